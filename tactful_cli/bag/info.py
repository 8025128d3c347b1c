"""`tactful bag info`: show what a bag contains."""

from rich.markup import escape
from rich.table import Table

from norm_core.bags.reader import BagReader
from norm_core.bags.types import Definitions
from norm_core.runtime.time import ns_to_s
from norm_core.runtime.wording import count_of
from tactful_cli.console import err, on_one_line, print_json, print_table, show
from tactful_cli.verb_options import AsJson, BagPath


def info(bag: BagPath, as_json: AsJson = False) -> None:
    """Show a bag's topics, types, message counts and length."""
    definitions = Definitions()
    with BagReader(bag) as reader:
        topics, bounds, count, notes = reader.topics, reader.bounds_ns, reader.message_count, reader.notes
        files = [{"file": file.name, "bytes": file.stat().st_size} for file in reader.paths]
    start_ns, end_ns = bounds or (None, None)
    length_s = ns_to_s(bounds[1] - bounds[0]) if bounds else 0.0
    unknown = sum(not definitions.is_known(topic) for topic in topics)
    if as_json:
        rows = [
            {
                "topic": t.topic,
                "type": t.type_name,
                "messages": t.message_count,
                "decoded": definitions.is_known(t),
                "latched": t.latched_depth > 0,
            }
            for t in topics
        ]
        result = {"messages": count, "start_ns": start_ns, "end_ns": end_ns, "length_s": length_s, "topics": rows}
        print_json(result | {"files": files, "notes": notes})
        return
    show(f"{bag}: {count_of(count, 'message')} in {length_s:.3f} s")
    table = Table("topic", "type", "messages", "remarks")
    for topic in topics:
        remarks = ("" if definitions.is_known(topic) else "type unknown", "latched" if topic.latched_depth else "")
        names = (escape(on_one_line(name)) for name in (topic.topic, topic.type_name))
        table.add_row(*names, str(topic.message_count), ", ".join(filter(None, remarks)))
    print_table(table)
    for note in notes:
        err.print(note, markup=False)
    if unknown:
        err.print(f"{count_of(unknown, 'topic')} of an unknown type: the messages can be copied, not decoded")
