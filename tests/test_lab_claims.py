"""The lab's gallery: its file is current, its texts are true, and its scenarios are those of the studies."""

import dataclasses
import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fullpipe.scenario import scenario

LAB = Path(__file__).parents[1] / "lab"


def load(name: str) -> ModuleType:
    """A module of the lab's folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, LAB / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


texts = load("gallery_texts")
claims = load("claims")
IDS = [entry.id for entry in texts.ENTRIES]


def test_gallery_file_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    # It runs every scenario, and stops where the numbers are not what the text says.
    claims.main(["--check"])
    assert len(capsys.readouterr().out.splitlines()) == len(IDS) >= 12


def test_untrue_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    false = dataclasses.replace(texts.ENTRIES[1], holds=lambda numbers: numbers["RTT at the end, bbr1"] < 1)
    monkeypatch.setattr(claims, "ENTRIES", (false,))
    with pytest.raises(SystemExit, match="do not show what the text says"):
        claims.main(["--check"])


@pytest.mark.parametrize("entry", texts.ENTRIES, ids=IDS)
def test_toml_scenario_matches_study(entry: Any) -> None:
    for document in claims.documents(entry).values():
        text = claims.toml(document)
        assert tomllib.loads(text) == document
        assert len(scenario.from_document(tomllib.loads(text)).alternatives) == 1


@pytest.mark.parametrize("entry", texts.ENTRIES, ids=IDS)
def test_a_text_has_three_sentences(entry: Any) -> None:
    for text in (entry.see, entry.why, entry.attempt):
        assert text.endswith(".") and not re.search(r"[.!?] [A-Z]", text), text


def test_test_map_file_is_current() -> None:
    maps = load("tests/map")
    assert json.loads(maps.FILE.read_text(encoding="utf-8")) == maps.maps()


def test_several_papers_are_shown() -> None:
    assert len({identity.partition(".")[0] for identity in IDS}) >= 6


def tried(identity: str, run: str, **path: str) -> Any:
    """A run of the gallery with another path, as its text tells visitors to try."""
    entry = texts.ENTRIES[IDS.index(identity)]
    document = claims.documents(entry)[run]
    return claims._run({**document, "path": {**document["path"], **path}})


def test_cubic_matches_first_second_text() -> None:
    series = tried("queue16.fig4", "cubic", buffer="1 bdp").flow_series()
    kb = [1.448 * one for one in series["inflight_segments"]]
    times = list(series["time_s"])
    most = kb.index(max(kb))
    after = kb[times.index(0.6) :]
    assert 0.4 < times[most] < 0.6 and 95 < kb[most] < 105
    assert 65 < after[0] < 75 and after[0] < after[-1] < 90


def test_shares_drift_matches_coexistence_text() -> None:
    shares = {}
    for buffer in ("2 bdp", "4 bdp", "8 bdp"):
        series = tried("queue16.coexist", "16 BDP", buffer=buffer).flow_series()
        bytes_ = {
            flow: dict(zip(own["time_s"], own["delivered_bytes"], strict=True))
            for flow, own in ((flow, series.filter(series["flow"] == flow)) for flow in ("bbr1", "cubic"))
        }

        def share(since: float, until: float, of: Any = bytes_) -> float:
            near = {flow: sorted(rows) for flow, rows in of.items()}
            grew = {
                flow: rows[max(at for at in near[flow] if at <= until)]
                - rows[min(at for at in near[flow] if at >= since)]
                for flow, rows in of.items()
            }
            return 100 * float(grew["bbr1"]) / float(sum(grew.values()))

        shares[buffer] = share(30, 60), [share(at, at + 10) for at in range(0, 60, 10)]
    assert shares["2 bdp"][0] > 50
    for buffer in ("4 bdp", "8 bdp"):
        mean, parts = shares[buffer]
        assert 35 < mean < 55 and max(parts) - min(parts) > 30
