"""Assemble what annotators kept into a folder that `bench run` reads, with splits and a datasheet."""

import json
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from norm_core.engines.options import OPTION_LETTERS as LETTERS
from norm_core.runtime.data_files import shipped_text
from norm_core.runtime.program import PROGRAM
from norm_core.runtime.wording import count_of
from sim_replays.own_items.annotation import AGREEMENT, NONE
from sim_replays.own_items.candidates import TEXTS
from sim_replays.own_items.item_run import ITEMS, PHASES, RIGHT_KINDS, ItemRun, PhaseCount, Scene

DEVELOPMENT_SHARE = 0.3  # of the sources
_LABELLING = "Two annotators answered apart. What they agreed on, or a third decided, is in the set.\n\nAgreement: "


def assemble(run: ItemRun) -> PhaseCount:
    """Write the items with their pictures, the splits and the datasheet. What stood there before is replaced."""
    scenes, is_normia = run.scenes("annotate"), run.file.suite == "egonormia"
    shutil.rmtree(run.folder / ITEMS, ignore_errors=True)
    entries = {scene.id: (_normia if is_normia else _bundle)(scene, run.file.seed) for scene in scenes}
    lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries.values()]
    content = json.dumps(entries, indent=1, ensure_ascii=False) if is_normia else "".join(lines)
    run.write(f"{ITEMS}/{'egonormia.json' if is_normia else 'own_default.bundles.jsonl'}", content)
    by_source: dict[str, list[str]] = {}
    for scene in scenes:
        ids = [scene.id] if is_normia else [item["uid"] for item in entries[scene.id]["mcq_items"]]
        by_source.setdefault(scene.source, []).extend(ids)
        for name in scene.pictures:
            path = f"frames/{scene.id}/{Path(name).name}" if is_normia else f"images/{scene.id}.jpg"
            run.write(f"{ITEMS}/{path}", (run.folder / name).read_bytes())
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
        rows = json.loads(path.read_text())["agreement"]
        agreement = _LABELLING + "; ".join(", ".join(f"{key} {row[key]}" for key in row) for row in rows)
    sources = [source for source in run.file.sources if source.name in ids]
    phases = [(name, run.file.phases[name]) for name in PHASES if name in run.file.phases]
    reasons = [", ".join(f"{number} {why}" for why, number in count.dropped.items()) or "none" for _, count in phases]
    facts = {
        **run.file.model_dump(include={"suite", "seed", "faces"}),
        "name": run.folder.name,
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
    others = [each for each in scene.candidates if each.kind == "other"]
    off = [each for each in scene.candidates if each.kind == "off_vantage"]
    agents = {
        letter: {
            "role": each.role,
            "appearance": each.appearance,
            "engagement": each.context,
            "singleton_type": "single",
        }
        for letter, each in zip(LETTERS, others, strict=False)
    }
    items = []
    for number, right in enumerate(each for each in scene.candidates if each.kind in RIGHT_KINDS):
        options = [right, *others, *(off[number % len(off) :][:1] if off else ())]
        random.Random(f"{seed}:{scene.id}:{right.id}").shuffle(options)
        lettered = dict(zip(LETTERS, options, strict=False))
        kinds = {right.id: "correct", others[0].id: "motor_a", others[1].id: "motor_b"}
        listed = "\n".join(f"{letter}) {each.action}" for letter, each in lettered.items())
        form = " | ".join(f'"{letter}"' for letter in lettered)
        items.append(
            {
                "uid": f"{scene.id}:{right.id}",
                "cand_kind": right.kind,
                "options": {letter: each.action for letter, each in lettered.items()},
                "option_labels": {letter: kinds.get(each.id, "composition_off") for letter, each in lettered.items()},
                "correct_letter": LETTERS[options.index(right)],
                "eval_prompt": f'{TEXTS["eval_prompt"]}\n{listed}\n\nAnswer in JSON alone: {{ "answer": {form} }}\n',
            }
        )
    file = {"image_id": scene.id, "file_name": f"{scene.id}.jpg", "captions": [scene.description]}
    return {**file, "agents": agents, "mcq_items": items}
