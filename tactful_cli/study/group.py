"""`tactful study`: logs, exports, agreement, reports, reviews and privacy of study sessions."""

from tactful_cli.study import add, coding, folder, forms, pages
from tactful_cli.verb import group

app = group("Plan, record, code, analyse, share and protect the sessions of a study (docs/how-to/study.md).")
for _part in (folder, add, coding, forms, pages):
    app.registered_commands += _part.app.registered_commands
