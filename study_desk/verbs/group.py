"""`tactful study`: logs, codings, agreement, reports and privacy of study sessions."""

from study_desk.verbs import add, agreement, import_coding, pack, planning, report, status, withdraw
from tactful_cli.verb_options import make_group

app = make_group("Record, code, analyse and protect the sessions of a study (docs/how-to/study.md).")
for _part in (planning, add, status, pack, import_coding, agreement, report, withdraw):
    app.registered_commands += _part.app.registered_commands
