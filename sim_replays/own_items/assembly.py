"""Assemble what annotators kept into a folder that `bench run` reads, with splits and a datasheet."""

import json
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from norm_core.engines.options import OPTION_LETTERS as LETTERS
from norm_core.files.data_files import shipped_text
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from sim_replays.own_items.annotation import AGREEMENT, NONE
from sim_replays.own_items.candidates import TEXTS
from sim_replays.own_items.item_run import ITEMS, PHASES, RIGHT_KINDS, ItemRun, PhaseCount, Scene

DEVELOPMENT_SHARE = 0.3  # of the sources
_LABELLING = "Two annotators answered apart. What they agreed on, or a third decided, is in the set."
_EXPERT = ("No expert looked at difficulty and variety.", "An expert looked at each item's difficulty and variety.")


def assemble(run: ItemRun) -> PhaseCount:
    """Write the items with their pictures, the splits and the datasheet. What stood there before is replaced."""
    scenes, file, lines = run.scenes("annotate"), "own_default.bundles.jsonl", list[Any]()
    shutil.rmtree(run.folder / ITEMS, ignore_errors=True)
    by_source: dict[str, list[str]] = {}
    for scene in scenes:
        folder = f"frames/{scene.id}"
        if run.file.suite == "egonormia":
            file, entries = "egonormia.json", [_normia(scene, run.file.seed)]
        else:
            entries, folder = [_bundle(scene, run.file.seed)], "images"
        lines += entries
        ids = [item["uid"] for entry in entries for item in entry.get("mcq_items", ())]
        by_source.setdefault(scene.source, []).extend(ids or [entry["id"] for entry in entries])
        for name in scene.pictures:
            picture = f"{scene.id}.jpg" if folder == "images" else Path(name).name
            run.write(f"{ITEMS}/{folder}/{picture}", (run.folder / name).read_bytes())
    if file.endswith(".json"):
        content = json.dumps({entry.pop("id"): entry for entry in lines}, indent=1, ensure_ascii=False)
    else:
        content = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in lines)
    run.write(f"{ITEMS}/{file}", content)
    count = run.finish("assemble", scenes, [])
    write_datasheet(run, by_source)
    return count


def write_datasheet(run: ItemRun, ids: Mapping[str, Sequence[str]]) -> None:
    """Write the splits by source, and the datasheet; `ids` are the items of each source."""
    names = sorted(ids)
    random.Random(run.file.seed).shuffle(names)
    cut = round(DEVELOPMENT_SHARE * len(names))
    splits = {"development": names[:cut], "test": names[cut:]}
    for split, of_split in splits.items():
        run.write(f"{ITEMS}/splits/{split}.txt", "".join(f"{item}\n" for name in of_split for item in ids[name]))
    path, agreement = run.folder / AGREEMENT, "Coders of the study coded it."
    if path.is_file():
        stored = json.loads(path.read_text())
        rows = [", ".join(f"{key} {row[key]}" for key in row) for row in stored["agreement"]]
        happens = ", ".join(f"{answer} {number}" for answer, number in stored.get("happens", {}).items())
        rows += [f"the best action happens in the recording: {happens}"] if happens else []
        judged = _LABELLING, _EXPERT[bool(stored.get("expert"))]
        agreement = "\n\n".join([*judged, f"Agreement: {'; '.join(rows)}."])
    sources = [source for source in run.file.sources if source.name in ids]
    phases = [(name, run.file.phases[name]) for name in PHASES if name in run.file.phases]
    reasons = [", ".join(f"{number} {why}" for why, number in count.dropped.items()) or "none" for _, count in phases]
    facts = {
        **run.file.model_dump(include={"suite", "seed", "faces"}),
        "name": run.folder.resolve().name,
        "program": PROGRAM,
        "items": count_of(sum(map(len, ids.values())), "item"),
        "sources": count_of(len(names), "source"),
        "splits": ", ".join(f"{split}.txt ({count_of(len(of), 'source')})" for split, of in splits.items()),
        "table": "\n".join(f"| {s.name} | {len(ids[s.name])} | {s.licence} | {s.consent} |" for s in sources),
        "phases": "\n".join(f"| {n} | {c.kept} | {why} |" for (n, c), why in zip(phases, reasons, strict=True)),
        "agreement": agreement,
    }
    run.write(f"{ITEMS}/datasheet.md", shipped_text("sim_replays.own_items", "datasheet.md").format(**facts))


def _normia(scene: Scene, seed: int) -> dict[str, Any]:
    """Return an entry of EgoNormia: four options in a drawn order, then none of them."""
    options = random.Random(f"{seed}:{scene.id}").sample(scene.candidates, len(scene.candidates))
    places = {candidate.id: place for place, candidate in enumerate(options)} | {NONE: len(options)}
    return {
        "id": scene.id,
        "behaviors": [*(candidate.action for candidate in options), ""],
        "justifications": [*(candidate.justification for candidate in options), ""],
        "correct": places[scene.best],
        "sensibles": sorted(places[name] for name in scene.sensible),
        "taxonomy": {str(place): [*candidate.norms] for place, candidate in enumerate(options)},
        "desc": scene.description,
        "activity": scene.activity,
    }


def _bundle(scene: Scene, seed: int) -> dict[str, Any]:
    """Return a bundle of EgoGapBench: an item for each right action, of four options where one is off-vantage."""
    others = [candidate for candidate in scene.candidates if candidate.kind == "other"]
    off = [candidate for candidate in scene.candidates if candidate.kind == "off_vantage"]
    agents = {
        letter: {
            "role": other.role,
            "appearance": other.appearance,
            "engagement": other.context,
            "singleton_type": "single",
        }
        for letter, other in zip(LETTERS, others, strict=False)
    }
    items = []
    for number, right in enumerate(candidate for candidate in scene.candidates if candidate.kind in RIGHT_KINDS):
        options = [right, *others, *(off[number % len(off) :][:1] if off else ())]
        random.Random(f"{seed}:{scene.id}:{right.id}").shuffle(options)
        lettered = dict(zip(LETTERS, options, strict=False))
        kinds = {right.id: "correct", others[0].id: "motor_a", others[1].id: "motor_b"}
        listed = "\n".join(f"{letter}) {candidate.action}" for letter, candidate in lettered.items())
        form = " | ".join(f'"{letter}"' for letter in lettered)
        items.append(
            {
                "uid": f"{scene.id}:{right.id}",
                "cand_kind": right.kind,
                "options": {letter: candidate.action for letter, candidate in lettered.items()},
                "option_labels": {
                    letter: kinds.get(candidate.id, "composition_off") for letter, candidate in lettered.items()
                },
                "correct_letter": LETTERS[options.index(right)],
                "eval_prompt": f'{TEXTS["eval_prompt"]}\n{listed}\n\nAnswer in JSON alone: {{ "answer": {form} }}\n',
            }
        )
    file = {"image_id": scene.id, "file_name": f"{scene.id}.jpg", "captions": [scene.description]}
    return {**file, "agents": agents, "mcq_items": items}
