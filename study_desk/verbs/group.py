"""`tactful study`: logs, codings, agreement, reports and privacy of study sessions."""

from study_desk.verbs import add, agreement, coding, folder, pages
from tactful_cli.verb import group

app = group("Plan, record, code, analyse, share and protect the sessions of a study (docs/how-to/study.md).")
for _part in (folder, add, coding, agreement, pages):
    app.registered_commands += _part.app.registered_commands
