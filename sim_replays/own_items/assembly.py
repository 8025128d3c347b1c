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
from sim_replays.own_items.item_run import ITEMS, PHASES, RIGHT_KINDS, Drop, ItemRun, PhaseCount, Scene

DEVELOPMENT_SHARE = 0.3  # of the sources
_KINDS = {"other_0": "motor_a", "other_1": "motor_b"}


def assemble(run: ItemRun) -> PhaseCount:
    """Write the items with their pictures, the splits and the datasheet. What stood there before is replaced."""
    scenes = run.scenes("annotate")
    shutil.rmtree(run.folder / ITEMS, ignore_errors=True)
    if run.file.suite == "egonormia":
        entries = {scene.id: _normia(scene, random.Random(f"{run.file.seed}:{scene.id}")) for scene in scenes}
        ids = {scene.id: [scene.id] for scene in scenes}
        content = json.dumps(entries, indent=1, ensure_ascii=False)
    else:
        bundles = [_bundle(scene, random.Random(f"{run.file.seed}:{scene.id}")) for scene in scenes]
        ids = {scene.id: [each["uid"] for each in b["mcq_items"]] for scene, b in zip(scenes, bundles, strict=True)}
        content = "".join(f"{json.dumps(bundle, ensure_ascii=False)}\n" for bundle in bundles)
    run.write(f"{ITEMS}/{'egonormia.json' if run.file.suite == 'egonormia' else 'own_default.bundles.jsonl'}", content)
    for scene in scenes:
        is_clip = run.file.suite == "egonormia"
        for name in scene.pictures if is_clip else scene.pictures[-1:]:
            path = f"frames/{scene.id}/{Path(name).name}" if is_clip else f"images/{scene.id}.jpg"
            run.write(f"{ITEMS}/{path}", (run.folder / name).read_bytes())
    count = run.finish("assemble", scenes, list[Drop]())
    by_source: dict[str, list[str]] = {}
    for scene in scenes:
        by_source.setdefault(scene.source, []).extend(ids[scene.id])
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
    sources = [source for source in run.file.sources if source.name in ids]
    path, agreement = run.folder / AGREEMENT, "No two annotators labelled it."
    if path.is_file():
        agreement = "Agreement of the two: " + "; ".join(
            f"{row['question']}: {row['equal']} of {row['n']} alike, kappa {row['kappa']}, alpha {row['alpha']}"
            for row in json.loads(path.read_text())["agreement"]
        )
    phases = {name: run.file.phases[name] for name in PHASES if name in run.file.phases}
    facts = {
        "name": run.folder.name,
        "program": PROGRAM,
        "suite": run.file.suite,
        "seed": run.file.seed,
        "faces": run.file.faces,
        "items": count_of(sum(map(len, ids.values())), "item"),
        "sources": count_of(len(names), "source"),
        "splits": ", ".join(f"{split}.txt ({count_of(len(of), 'source')})" for split, of in splits.items()),
        "table": "\n".join(f"| {s.name} | {len(ids[s.name])} | {s.licence} | {s.consent} |" for s in sources),
        "phases": "\n".join(f"| {name} | {each.kept} | {_reasons(each)} |" for name, each in phases.items()),
        "agreement": agreement,
    }
    run.write(f"{ITEMS}/datasheet.md", shipped_text("sim_replays.own_items", "datasheet.md").format(**facts))


def _reasons(count: PhaseCount) -> str:
    return ", ".join(f"{number} {why}" for why, number in count.dropped.items()) or "none"


def _normia(scene: Scene, draw: random.Random) -> dict[str, Any]:
    """Return an entry of EgoNormia: four options in a drawn order, then none of them."""
    options = draw.sample(scene.candidates, len(scene.candidates))
    places = {candidate.id: place for place, candidate in enumerate(options)} | {NONE: len(options)}
    return {
        "behaviors": [*(candidate.action for candidate in options), ""],
        "justifications": [*(candidate.justification for candidate in options), ""],
        "correct": places[scene.best],
        "sensibles": sorted(places[name] for name in scene.sensible),
        "taxonomy": {str(place): [*candidate.norms] for place, candidate in enumerate(options)}
        | {str(len(options)): []},
        "desc": scene.description,
        "activity": scene.activity,
    }


def _bundle(scene: Scene, draw: random.Random) -> dict[str, Any]:
    """Return a bundle of EgoGapBench: an item for each right action, of four options where one is off-vantage."""
    others = [each for each in scene.candidates if each.kind == "other"]
    off = [each for each in scene.candidates if each.kind == "off_vantage"]
    items = []
    for number, right in enumerate(each for each in scene.candidates if each.kind in RIGHT_KINDS):
        options = [right, *others, *off[number % len(off) :][:1]] if off else [right, *others]
        draw.shuffle(options)
        lettered = dict(zip(LETTERS, options, strict=False))
        kinds = {"correct": right.id, **{kind: name for name, kind in _KINDS.items()}}
        labels = {each: kind for kind, each in kinds.items()}
        listed = "\n".join(f"{letter}) {each.action}" for letter, each in lettered.items())
        form = f'{{ "answer": {" | ".join(f"{chr(34)}{letter}{chr(34)}" for letter in lettered)} }}'
        items.append(
            {
                "uid": f"{scene.id}:{right.id}",
                "cand_kind": right.kind,
                "options": {letter: each.action for letter, each in lettered.items()},
                "option_labels": {letter: labels.get(each.id, "composition_off") for letter, each in lettered.items()},
                "correct_letter": next(letter for letter, each in lettered.items() if each is right),
                "eval_prompt": f"{TEXTS['eval_prompt']}\n{listed}\n\nAnswer in JSON and nothing else:\n{form}\n",
            }
        )
    agents = {
        LETTERS[place]: {"role": each.role, "appearance": each.appearance, "engagement": each.context,
                         "singleton_type": "singleton_role"}
        for place, each in enumerate(others)
    }  # fmt: skip
    file = {"image_id": scene.id, "file_name": f"{scene.id}.jpg", "captions": [scene.description]}
    return {**file, "agents": agents, "mcq_items": items}
