"""What `stepc simulate` writes agrees with itself: the table's JSON, the trace, and what the page's script
draws of it in a browser that cannot fetch anything."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, real_compiler

SPEC = ROOT / "examples" / "muon.optim"
MANIFEST = ROOT / "examples" / "four_ranks.json"
LANES = ("compute", "wait", "messages")
SEAL = 32  # bytes behind the values of each message


def browser():
    return next(
        filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None
    )


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """A folder with step.json, trace.json and step.html of one step on eight ranks that share two devices."""
    compiler = real_compiler()
    if compiler is None:
        pytest.skip("build/bin/stepc was not built")
    folder = tmp_path_factory.mktemp("step")
    manifest = json.loads(MANIFEST.read_text())
    manifest["cluster"] = {"profile": "h100", "levels": [{"name": "nvlink", "ranks": 2}, {"name": "network"}]}
    # A name that would end the element in which the page keeps its data.
    manifest["meshes"][0]["name"] = "</script>"
    for parameter in manifest["parameters"]:
        parameter["mesh"] = "</script>"
    (folder / "m.json").write_text(json.dumps(manifest))
    done = subprocess.run(
        [compiler, "simulate", SPEC, "-m", folder / "m.json", "--oversubscribe", "4/2", "--waves", "2", "--strategy", "*=owner",
         "--json", folder / "step.json", "--trace", folder / "trace.json", "--html", folder / "step.html"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def read(path):
    return json.loads(path.read_text())


def test_figures_agree(step):
    figures = read(step / "step.json")
    ranks = figures["ranks"]
    assert figures["latency_seconds"] == max(rank["end_seconds"] for rank in ranks) > 0
    assert sum(rank["bytes_sent"] for rank in ranks) == sum(rank["bytes_received"] for rank in ranks) > 0
    assert (
        sum(rank["messages_sent"] for rank in ranks) == sum(rank["messages_received"] for rank in ranks) > 0
    )
    for rank in ranks:
        assert rank["bytes_sent"] == sum(level["bytes"] for level in rank["sent"])
        assert [level["level"] for level in rank["sent"]] == figures["levels"] == ["nvlink", "network"]
        # Devices that are shared take longer than one alone, never less.
        assert rank["compute_seconds"] >= rank["work_seconds"] * (1 - 1e-9) > 0
        assert rank["idle_seconds"] == pytest.approx(figures["latency_seconds"] - rank["compute_seconds"])
        assert rank["end_seconds"] == pytest.approx(rank["compute_seconds"] + rank["exposed_seconds"])
    for level in range(2):
        # Values alone are the groups'; each message has a seal, too.
        sent = sum(rank["sent"][level]["bytes"] - SEAL * rank["sent"][level]["messages"] for rank in ranks)
        assert sent == sum(group["bytes_sent"][level] for group in figures["groups"])
        assert sent == sum(strategy["bytes_sent"][level] for strategy in figures["strategies"])
    assert figures["workspace_bytes"] >= figures["arena_bytes"] + figures["scratch_bytes"]
    assert figures["peak_bytes"] == figures["workspace_bytes"] + max(rank["shard_bytes"] for rank in ranks)


def slices(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def test_trace(step):
    """The trace-event format: slices of a thread follow each other, and have what the figures say
    together.
    """
    figures, trace = read(step / "step.json"), read(step / "trace.json")
    tracks = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    assert tracks.pop(max(tracks)) == "bytes under way"
    by_rank = {rank["global_rank"]: rank for rank in figures["ranks"]}
    # Four ranks of which each computes something else, so that none stands for another.
    assert tracks == {rank: f"rank {rank}" for rank in by_rank}
    for process in tracks:
        for thread, lane in enumerate(LANES):
            own = [event for event in slices(trace) if event["pid"] == process and event["tid"] == thread]
            assert own and all(event["cat"] == lane for event in own)
            assert all(event["dur"] > 0 for event in own)
            for before, after in zip(own, own[1:], strict=False):
                assert before["ts"] + before["dur"] <= after["ts"] * (1 + 1e-9), (before, after)
            total = sum(event["dur"] for event in own) * 1e-6
            if lane != "messages":
                key = {"compute": "compute_seconds", "wait": "exposed_seconds"}[lane]
                assert total == pytest.approx(by_rank[process][key])
        assert any(".w1" in event["args"]["segments"] for event in slices(trace))
    counters = [event for event in trace["traceEvents"] if event["ph"] == "C"]
    assert {event["name"] for event in counters} == set(figures["levels"])
    assert max(event["args"]["bytes"] for event in counters) > 0


def test_slices_of_a_thread_do_not_overlap(step):
    """Also where a rank has begun an exchange before the one before it is done, as it may without streams."""
    trace = step / "waits.json"
    done = subprocess.run(
        [real_compiler(), "simulate", SPEC, "-m", step / "m.json", "--waves", "3", "--messages", "waits", "--trace", trace],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    threads = {}
    for event in slices(read(trace)):
        threads.setdefault((event["pid"], event["tid"]), []).append(event)
    assert any(thread > LANES.index("messages") for _, thread in threads)  # some do begin early
    for own in threads.values():
        for before, after in zip(own, own[1:], strict=False):
            assert before["ts"] + before["dur"] <= after["ts"] * (1 + 1e-9), (before, after)


def test_page_names_nothing_to_fetch(step):
    page = (step / "step.html").read_text()
    assert not re.search(
        r"""(https?:)?//[a-z0-9.-]+\.[a-z]{2,}|@import|url\((?!data:)|\b(src|srcset|action)\s*=""", page
    )
    assert re.findall(r"""href="([^"]*)""", page) == ["data:,"]
    assert page.count("</script>") == 2
    for word in ("fetch(", "XMLHttpRequest", "WebSocket", "import(", "sendBeacon", "EventSource"):
        assert word not in page
    assert "default-src 'none'" in page


def opened(step, *options):
    program = browser()
    if program is None:
        pytest.skip("no chromium is installed")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900",
               f"--user-data-dir={step}/profile", *options, "--dump-dom", (step / "step.html").as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def attributes(dom, element):
    found = re.search(rf'<[a-z]+ id="{element}"[^>]*>', dom)
    return dict(re.findall(r'data-([a-z-]+)="([^"]*)"', found[0]))


def test_page_draws_what_the_figures_say(step):
    dom, figures, trace = opened(step), read(step / "step.json"), read(step / "trace.json")
    assert '<body data-drawn="yes">' in dom  # the script's last line
    timeline = attributes(dom, "timeline")
    assert int(timeline["bars"]) == len(slices(trace))
    assert 0 < int(timeline["drawn"]) <= int(timeline["bars"])
    assert int(timeline["tracks"]) == int(attributes(dom, "load")["bars"]) == len(figures["ranks"]) == 4
    assert int(attributes(dom, "flight")["levels"]) == 2
    sent = sum(rank["bytes_sent"] for rank in figures["ranks"])
    assert int(attributes(dom, "figures")["bytes-sent"]) == sent
    assert float(attributes(dom, "figures")["latency"]) == figures["latency_seconds"]
    values = sent - SEAL * sum(rank["messages_sent"] for rank in figures["ranks"])
    for table in ("strategies", "groups"):
        assert attributes(dom, table) == {"rows": str(len(figures[table])), "bytes": str(values)}
    assert dom.count('<td class="bar">') == len(figures["strategies"]) + len(figures["groups"])
    assert "4 of 4 classes of ranks" in dom
    chips = re.findall(r'class="key chip" data-group="([^"]*)"', dom)
    assert chips == [group["name"] for group in figures["groups"]]


# A document without a browser: elements that keep what is put into them, and what colours bars have.
DOCUMENT = """
const made = { document: [], bars: new Set(), chips: {} };
class Element {
  constructor() { this.dataset = {}; this.style = { setProperty() {} }; this.children = []; this.clientWidth = 1200; }
  append(child) { this.children.push(child); }
  get childElementCount() { return this.children.length; }
  addEventListener() {}
  getContext() {
    return new Proxy({}, {
      get: (target, name) => target[name] ?? ((...rest) => name === "fillRect" && made.bars.add(target.fillStyle)),
      set: (target, name, value) => { target[name] = value; return true; },
    });
  }
}
const elements = {};
globalThis.window = { devicePixelRatio: 1, innerWidth: 1200, addEventListener() {} };
globalThis.getComputedStyle = () => ({ getPropertyValue: (name) => name });
globalThis.document = {
  documentElement: new Element(), body: new Element(),
  getElementById: (id) => (elements[id] ??= new Element()),
  createElement() { const one = new Element(); made.document.push(one); return one; },
};
document.getElementById("data").textContent = require("fs").readFileSync(process.argv[2], "utf8");
"""


def test_a_chip_has_the_colour_of_its_group(step):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    page = (step / "step.html").read_text()
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1]
    script = re.search(r"<script>\n(.*?)</script>", page, re.DOTALL)[1]
    (step / "data.json").write_text(data)
    (step / "page.js").write_text(DOCUMENT + script + """
      for (const one of made.document)
        if (one.className === "key chip") made.chips[one.dataset.group] = one.style.background;
      console.log(JSON.stringify({ chips: made.chips, bars: [...made.bars] }));
    """)
    done = subprocess.run(
        [node, step / "page.js", step / "data.json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    drawn, figures = json.loads(done.stdout), read(step / "step.json")
    chips = drawn["chips"]
    assert list(chips) == [group["name"] for group in figures["groups"]]
    assert len(set(chips.values())) == len(chips)
    # Each group computes, so that each colour is one of a bar.
    assert set(chips.values()) <= set(drawn["bars"])


def test_browser_fetches_nothing(step):
    """The browser's own log of the network names the page alone."""
    opened(step, f"--log-net-log={step}/net.json", "--disable-background-networking", "--disable-component-update")
    text = (step / "net.json").read_text()
    assert '"constants"' in text  # it was written
    urls = set(re.findall(r'"url":"([^"]*)"', text))
    assert not {url for url in urls if not url.startswith(("file:", "data:", "blob:"))}, urls


def test_a_layer_of_llama_takes_what_it_took_on_an_h200(tmp_path):
    """docs/gpu-results.md has 56.9 to 60.1 ms, the step's launches and elementwise work included."""
    compiler = real_compiler()
    if compiler is None:
        pytest.skip("build/bin/stepc was not built")
    sys.path.insert(0, str(ROOT / "test" / "gpu"))
    from libraries import LLAMA_8B, MUON, manifest, parameter

    (tmp_path / "step.optim").write_text(MUON)
    layer = manifest([parameter(name, shape, "bf16") for name, shape in LLAMA_8B.items()])
    (tmp_path / "m.json").write_text(json.dumps(layer))

    def simulated(*options):
        files = [tmp_path / "step.optim", "-m", tmp_path / "m.json"]
        done = subprocess.run([compiler, "simulate", *files, "--cluster", "h200", *options, "--json", "-"],
                              capture_output=True, text=True, check=True)  # fmt: skip
        return json.loads(done.stdout)

    # The kernels of mma.sync are those that were measured.
    step = simulated("--target", "cuda:sm_90")
    assert step["latency_seconds"] == pytest.approx(0.0569, rel=0.05)
    # Two of three products are symmetric: 15.1 of 20.8 TFLOP with tiles of 256, fewer with blocks of 64.
    (rank,) = step["ranks"]
    assert rank["full_flops"] == pytest.approx(20.8e12, rel=0.01)
    assert rank["flops"] == pytest.approx(14.8e12, rel=0.01)
    # In chains it takes as long as multiply-adds, and without a GPU's kernels the device's figure is taken as it is.
    assert simulated("--target", "cuda:sm_90a,chain")["latency_seconds"] > 5 * step["latency_seconds"]
    assert simulated()["latency_seconds"] < 0.5 * step["latency_seconds"]
