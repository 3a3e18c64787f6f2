// Draws the page from the data in it. Texts are put into it as text, never as HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const rows = data.plan.rows;
const budget = data.plan.budget_bytes;

const KINDS = ["parameters", "optimizer", "gradients", "buffers", "inputs", "workspaces",
  "activations", "temporaries"];
const KIND_WORDS = { optimizer: "the optimizer's state", workspaces: "workspaces of libraries" };
// The order of kinds in the data, where a part of the peak has the number of its kind.
const KIND_NUMBERS = Object.keys(rows.length ? rows[0].peak_bytes : {});
const REASONS = {
  copy_in: "waited for a copy in, from the host",
  copy_out: "waited for a copy out, to the host",
  other_stream: "waited for a kernel of another stream",
  earlier_step: "waited for work of the previous step",
  launch: "the host had not launched it yet",
  host_waited: "the host itself was waiting",
  no_more_work: "no more work in this step",
};
const LANE_REASONS = {
  compute: {},
  "copy out": { launch: "nothing to copy", other_stream: "waited for a kernel to write the tensor" },
  "copy in": { launch: "nothing to copy", other_stream: "waited for the memory to be free" },
  host: { host_waited: "waited for the card: it is as far ahead as it is allowed",
    no_more_work: "all is launched" },
};
const reasonWords = (lane, why) => LANE_REASONS[lane][why] || REASONS[why];

// The runs, with their columns of differences turned into numbers.

const runs = data.runs.map((run) => {
  if (!run.drawn) return run;
  const memory = {
    at: column(run.memory.at_ns), reserved: column(run.memory.reserved_bytes),
    kinds: Object.fromEntries(KINDS.map((kind) => [kind, column(run.memory.bytes[kind])])),
  };
  memory.total = memory.at.map((_, i) => sum(KINDS.map((kind) => memory.kinds[kind][i])));
  const lanes = run.lanes.map((lane) => ({
    ...lane, busy: column(lane.slices.busy_ns), begun: column(lane.slices.begun),
    name: column(lane.slices.name), module: column(lane.slices.module),
    idle: Object.fromEntries(Object.entries(lane.slices.idle_ns).map(
      ([why, list]) => [why, column(list)])),
  }));
  return { ...run, memory, lanes };
});
const drawn = runs.filter((run) => run.drawn);
const scaleBytes = topOf(Math.max(...drawn.map((run) => Math.max(...run.memory.total))), budget);
let chosen = runs.find((run) => run.drawn && run.policy === data.best) || drawn[0];

function choose(policy) {
  chosen = runs.find((run) => run.policy === policy);
  const focused = document.activeElement && document.activeElement.id;
  draw();
  const again = focused && document.getElementById(focused);
  if (again) again.focus();
}
function chooser(run, place, ...children) {
  return html("button", {
    id: `${place}-${run.policy}`, type: "button", class: place === "row" ? "link" : null,
    "aria-pressed": String(run === chosen), onclick: () => choose(run.policy),
  }, ...children);
}

// The sections.

function drawPolicies() {
  const columns = [["policy", "text"], ["fits"], ["a step"], ["of keep's"], ["needs"],
    ["short by"], ["allocated"], ["reserved"], ["host"], ["copies hidden"]];
  const lines = rows.map((row, i) => {
    const fits = row.useless ? "useless" : row.fits ? "yes" : "no";
    return { chosen: runs[i] === chosen, cells: [
      runs[i].drawn ? chooser(runs[i], "row", row.policy) : row.policy,
      html("span", { class: row.fits && !row.useless ? "yes" : "no" }, fits),
      time(row.step_ns), row.slowdown === null ? null : row.slowdown.toFixed(3),
      row.least_bytes === null ? null : bytes(row.least_bytes),
      row.least_bytes > budget ? bytes(row.least_bytes - budget) : null, bytes(row.device_peak_bytes),
      bytes(row.device_reserved_bytes), bytes(row.host_peak_bytes),
      row.overlap === null ? null : percent(row.overlap, 1),
    ] };
  });
  const refused = rows.filter((row) => row.refusal || row.errors.length);
  show("policies", table(columns, lines, "The policies"), refused.length ? html("details", {},
    html("summary", {}, "Why some do not fit: PyTorch's messages"), html("ul", {},
      ...refused.map((row) => html("li", {}, html("strong", {}, `${row.policy}: `),
        row.errors.length ? row.errors[0].message : row.refusal)))) : null);
  document.getElementById("included").textContent =
    `${data.plan.hardware}: ${data.card.description}, ${bytes(data.card.capacity_bytes)}. ` +
    `Included: ${data.included}; the step is ${data.step}.`;
}

const kindLegend = (isThere) => legend(KINDS.filter(isThere)
  .map((kind) => [KIND_WORDS[kind] || kind, kind]));

// The line of the budget, in pictures where memory is the horizontal axis.
function budgetLine(plot, x) {
  const far = x(budget) > plot.right;
  return [far ? null : svg("line", { class: "limit", x1: x(budget), x2: x(budget),
    y1: plot.top - 4, y2: plot.bottom }), svg("text", { class: "limit-text", y: plot.top - 10,
    x: Math.min(x(budget), plot.right), "text-anchor": far ? "end" : "middle" },
  `budget ${bytes(budget)}${far ? ", far beyond" : ""}`)].filter((each) => each);
}

function drawPeaks() {
  const plot = { left: 150, right: 980, top: 26, bottom: 26 + 26 * rows.length };
  const most = topOf(Math.max(...rows.map((row) => row.device_peak_bytes)), budget);
  const x = (value) => plot.left + value / most * (plot.right - plot.left);
  const bars = rows.flatMap((row, i) => {
    const y = plot.top + 26 * i + 4;
    let at = 0;
    const parts = KINDS.map((kind) => {
      const part = svg("rect", { x: x(at), y, height: 18, width: x(row.peak_bytes[kind]) - plot.left,
        style: `fill: var(--${kind})` });
      at += row.peak_bytes[kind];
      return part;
    });
    const words = [`${row.policy}: ${bytes(at)} at its peak`, ...KINDS.filter((k) => row.peak_bytes[k])
      .map((k) => `${KIND_WORDS[k] || k}: ${bytes(row.peak_bytes[k])}`)].join("\n");
    return [svg("text", { x: plot.left - 8, y: y + 13, "text-anchor": "end", class: "strong" },
      row.policy), tips(svg("g", {}, ...parts), words)];
  });
  const line = budgetLine(plot, x);
  const axis = xAxis(plot, byteTicks(0, most, 8), x, "allocated");
  const isThere = (kind) => rows.some((row) => row.peak_bytes[kind]);
  show("peaks", figure(kindLegend(isThere), scroll(picture(1000, plot.bottom + 40,
    "Memory at the peak by kind, a bar for each policy", [...axis, ...bars, ...line])),
  asTable([["policy", "text"], ...KINDS.map((kind) => [kind]), ["all"]], rows.map((row) => ({
    cells: [row.policy, ...KINDS.map((kind) => bytes(row.peak_bytes[kind])),
      bytes(row.device_peak_bytes)] })), "Memory at the peak by kind")));
}

// The outline of an area with one height for each slice, down to `base`.
function area(values, x, y, base) {
  let path = "";
  values.forEach((value, i) => {
    path += `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(value).toFixed(1)}H${x(i + 1).toFixed(1)}`;
  });
  if (base) {
    for (let i = values.length - 1; i >= 0; --i) {
      path += `L${x(i + 1).toFixed(1)} ${y(base[i]).toFixed(1)}H${x(i).toFixed(1)}`;
    }
    path += "Z";
  }
  return path;
}

function drawTiles() {
  const longest = Math.max(...drawn.map((run) => run.step_ns));
  show("tiles", ...drawn.map((run) => {
    const row = rows[runs.indexOf(run)];
    const count = run.memory.total.length;
    const x = (i) => i / count * 160 * run.step_ns / longest;
    const y = (value) => 70 - value / scaleBytes * 68;
    const small = svg("svg", { viewBox: "0 0 160 70", "aria-hidden": "true" },
      svg("path", { class: "total", d: area(run.memory.total, x, y, run.memory.total.map(() => 0)) }),
      svg("line", { class: "limit", x1: 0, x2: 160, y1: y(budget), y2: y(budget) }));
    return chooser(run, "tile", html("strong", {}, run.policy), small,
      html("small", {}, `${time(row.step_ns)}, ${bytes(row.device_peak_bytes)}`));
  }));
}

function drawMemory() {
  const { memory } = chosen;
  const count = memory.at.length;
  const plot = { left: 80, right: 980, top: 34, bottom: 330 };
  const most = topOf(Math.max(...memory.reserved, ...memory.total), budget);
  const x = (i) => plot.left + i / count * (plot.right - plot.left);
  const atTime = (ns) => plot.left + ns / chosen.step_ns * (plot.right - plot.left);
  const y = (value) => plot.bottom - value / most * (plot.bottom - plot.top);
  let base = memory.at.map(() => 0);
  const areas = KINDS.map((kind) => {
    const top = base.map((value, i) => value + memory.kinds[kind][i]);
    const path = svg("path", { d: area(top, x, y, base), style: `fill: var(--${kind})` });
    base = top;
    return path;
  });
  const peak = memory.total.indexOf(Math.max(...memory.total));
  const words = (i) => [`${time(memory.at[i])}: ${bytes(memory.total[i])} allocated, ` +
    `${bytes(memory.reserved[i])} reserved`, ...KINDS.filter((kind) => memory.kinds[kind][i])
    .map((kind) => `${KIND_WORDS[kind] || kind}: ${bytes(memory.kinds[kind][i])}`)].join("\n");
  const peakAt = x(peak + 0.5);
  const end = peakAt > 840 ? "end" : "start";
  const drawing = picture(1000, 372, `Memory over one step of ${chosen.policy}: ` +
    `the peak is ${words(peak).replaceAll("\n", "; ")}. Arrow keys move through it.`, [
    ...yAxis(plot, byteTicks(0, most, 6), y, "memory"), ...areas,
    svg("path", { class: "reserved", d: area(memory.reserved, x, y) }),
    ...xAxis(plot, timeTicks(0, chosen.step_ns, 10), atTime, "time since the step began"),
    ...limitLine(plot, y(budget), `budget ${bytes(budget)}`),
    svg("text", { class: "strong", x: peakAt + (end === "end" ? -4 : 4), y: y(memory.total[peak]) - 4,
      "text-anchor": end }, `peak ${bytes(memory.total[peak])}`)]);
  const every = Math.max(Math.ceil(count / 50), 1);
  const lines = [];
  for (let i = 0; i < count; i += every) {
    const most = memory.total.slice(i, i + every);
    const at = i + most.indexOf(Math.max(...most));
    lines.push({ cells: [time(memory.at[at]), ...KINDS.map((kind) => bytes(memory.kinds[kind][at])),
      bytes(memory.total[at]), bytes(memory.reserved[at])] });
  }
  show("memory", figure(legend([...KINDS.filter((kind) => memory.kinds[kind].some((each) => each))
    .map((kind) => [KIND_WORDS[kind] || kind, kind]), ["reserved from the card", null, "stroke"],
  ["the budget", null, "stroke is-limit"]]),
  scroll(withCursor(drawing, plot, count, words)),
  asTable([["time"], ...KINDS.map((kind) => [kind]), ["allocated"], ["reserved"]], lines,
    "Memory over time by kind")));
}

// The path of one colour in all slices of a lane. Adds its heights to `below`.
function slicePath(part, below, sliceNs, x, top, height) {
  let path = "";
  part.forEach((ns, i) => {
    if (ns > 0) {
      const y = top + height * (1 - (below[i] + ns) / sliceNs[i]);
      path += `M${x(i).toFixed(2)} ${y.toFixed(1)}H${x(i + 1).toFixed(2)}` +
        `v${(height * ns / sliceNs[i]).toFixed(1)}H${x(i).toFixed(2)}Z`;
    }
    below[i] += ns;
  });
  return path;
}

const workWords = (work) => `${data.texts[work.name]}` +
  (work.bytes === undefined ? "" : ` of ${bytes(work.bytes)}`) + `, ${data.texts[work.module]}`;

function laneWords(i) {
  const from = i * chosen.slices.slice_ns;
  const lines = [`${time(from)} to ${time(Math.min(from + chosen.slices.slice_ns, chosen.step_ns))}`];
  for (const lane of chosen.lanes) {
    const longest = lane.name[i] < 0 ? "" :
      ` (${data.texts[lane.name[i]]}, ${data.texts[lane.module[i]]})`;
    const idle = Object.entries(lane.idle).filter(([, list]) => list[i] > 0)
      .sort(([, a], [, b]) => b[i] - a[i]).map(([why]) => reasonWords(lane.lane, why));
    const busy = lane.busy[i] + sum(Object.values(lane.idle).map((list) => list[i]));
    lines.push(`${lane.lane}: ${percent(lane.busy[i], busy)} busy` +
      (lane.lane === "host" ? "" : longest) + (idle.length ? `; ${idle[0]}` : ""));
  }
  return lines.join("\n");
}

function drawLanes() {
  const count = chosen.slices.count;
  const plot = { left: 80, right: 980, top: 10, bottom: 10 + 44 * chosen.lanes.length };
  const x = (i) => plot.left + i / count * (plot.right - plot.left);
  const atTime = (ns) => plot.left + ns / chosen.step_ns * (plot.right - plot.left);
  const sliceNs = Array.from({ length: count }, (_, i) =>
    Math.min((i + 1) * chosen.slices.slice_ns, chosen.step_ns) - i * chosen.slices.slice_ns);
  const used = new Set();
  const parts = chosen.lanes.flatMap((lane, n) => {
    const top = plot.top + 44 * n;
    const below = sliceNs.map(() => 0);
    const shapes = [svg("path", { style: "fill: var(--busy)",
      d: slicePath(lane.busy, below, sliceNs, x, top, 34) })];
    for (const why of Object.keys(REASONS)) {
      const told = lane.lane === "compute" || why.startsWith("copy");
      if (!lane.idle[why] || why === "no_more_work" || !told) continue;
      used.add(why);
      shapes.push(svg("path", { style: `fill: var(--${why})`,
        d: slicePath(lane.idle[why], below, sliceNs, x, top, 34) }));
    }
    return [svg("text", { x: plot.left - 8, y: top + 21, "text-anchor": "end", class: "strong" },
      lane.lane), svg("line", { class: "grid", x1: plot.left, x2: plot.right, y1: top + 34.5,
      y2: top + 34.5 }), ...shapes];
  });
  const drawing = picture(1000, plot.bottom + 40, `What ran when in ${chosen.policy}: ` +
    chosen.lanes.map((lane) => `${lane.lane} ${percent(lane.busy_ns, chosen.step_ns)} busy`)
      .join(", ") + ". Arrow keys move through it.", [...parts,
    ...xAxis(plot, timeTicks(0, chosen.step_ns, 10), atTime, "time since the step began")]);
  show("lanes", figure(legend([["working", "busy"], ...[...used].map((why) => [REASONS[why], why])]),
    scroll(withCursor(drawing, plot, count, laneWords)), laneTable()), gapTable());
}

function laneTable() {
  const lines = chosen.lanes.flatMap((lane) => [
    { cells: [lane.lane, "working", time(lane.busy_ns), percent(lane.busy_ns, chosen.step_ns)] },
    ...Object.entries(lane.idle_ns).sort(([, a], [, b]) => b - a).map(([why, ns]) => ({ cells:
      [lane.lane, reasonWords(lane.lane, why), time(ns), percent(ns, chosen.step_ns)] }))]);
  return asTable([["lane", "text"], ["what", "text"], ["time"], ["of the step"]], lines,
    "What each lane did, in all");
}

function gapTable() {
  const gaps = chosen.lanes[0].longest_gaps;
  if (!gaps.length) return html("p", {}, "Compute had no gap.");
  const lines = gaps.map((gap) => ({ cells: [time(gap.at_ns), time(gap.ns),
    REASONS[gap.why] + (gap.waited_for ? `: ${workWords(gap.waited_for)}` : ""),
    gap.before ? workWords(gap.before) : "the end of the step"] }));
  return html("details", {}, html("summary", {}, `The longest gaps of compute (${gaps.length})`),
    html("div", { class: "scroll", tabindex: 0 }, table([["at"], ["for"], ["why", "words"],
      ["what came next", "words"]], lines, "The longest gaps of compute")));
}

// Sums the peak by modules of a depth: "model.layers.3.mlp" counts for "model.layers.3" at depth 3.
function modulesAt(depth) {
  const groups = new Map();
  for (const [text, kind, part] of chosen.peak.parts) {
    const name = data.texts[text];
    const key = name.startsWith("(") ? name : name.split(".").slice(0, depth).join(".");
    const group = groups.get(key) || { name: key, all: 0, kinds: {} };
    groups.set(key, group);
    const word = KIND_NUMBERS[kind];
    group.kinds[word] = (group.kinds[word] || 0) + part;
    group.all += part;
  }
  return [...groups.values()];
}
const MODULES_MOST = 48;
let depth = 0;

function drawModules() {
  const deepest = Math.max(...chosen.peak.parts.map(([text]) => data.texts[text].split(".").length));
  if (!depth) {
    depth = 1;
    while (depth < deepest && modulesAt(depth + 1).length <= MODULES_MOST) ++depth;
  }
  const groups = modulesAt(depth);
  const all = sum(groups.map((group) => group.all));
  const shown = [...groups].sort((a, b) => b.all - a.all).slice(0, MODULES_MOST);
  const listed = groups.filter((group) => shown.includes(group));  // in the model's order
  const plot = { left: 250, right: 980, top: 4, bottom: 4 + 17 * listed.length };
  const most = 1.02 * Math.max(...listed.map((group) => group.all));
  const x = (value) => plot.left + value / most * (plot.right - plot.left);
  const bars = listed.flatMap((group, i) => {
    const y = plot.top + 17 * i + 2;
    let at = 0;
    const parts = KINDS.filter((kind) => group.kinds[kind]).map((kind) => {
      const part = svg("rect", { x: x(at), y, height: 13, width: x(group.kinds[kind]) - plot.left,
        style: `fill: var(--${kind})` });
      at += group.kinds[kind];
      return part;
    });
    const words = [`${group.name}: ${bytes(group.all)}, ${percent(group.all, all)} of the peak`,
      ...KINDS.filter((kind) => group.kinds[kind])
        .map((kind) => `${KIND_WORDS[kind] || kind}: ${bytes(group.kinds[kind])}`)].join("\n");
    const name = group.name.length > 36 ? `…${group.name.slice(-35)}` : group.name;
    return [svg("text", { x: plot.left - 8, y: y + 11, "text-anchor": "end", class: "strong" }, name),
      tips(svg("g", {}, ...parts), words)];
  });
  const depths = html("label", {}, "Modules down to a depth of ", html("select", {
    id: "depth", onchange: (event) => { depth = Number(event.target.value); drawModules(); },
  }, ...Array.from({ length: deepest }, (_, i) => html("option", { value: i + 1,
    selected: i + 1 === depth ? "" : null }, String(i + 1)))));
  const rest = groups.length - listed.length;
  show("modules", html("p", {}, depths, ` At ${time(chosen.peak.at_ns)}, ${bytes(all)}.` +
    (rest ? ` The ${MODULES_MOST} largest of ${groups.length} are shown.` : "")),
  figure(kindLegend((kind) => groups.some((group) => group.kinds[kind])), scroll(picture(1000,
    plot.bottom + 40, `What the peak of ${chosen.policy} is made of, a bar for each module`,
    [...xAxis(plot, byteTicks(0, most, 8), x, "allocated at the peak"), ...bars])),
  asTable([["module", "text"], ...KINDS.map((kind) => [kind]), ["all"]], [...groups]
    .sort((a, b) => b.all - a.all).slice(0, 200).map((group) => ({ cells: [group.name,
      ...KINDS.map((kind) => bytes(group.kinds[kind] || 0)), bytes(group.all)] })),
  "What the peak is made of, by module")));
}

function drawCurve() {
  const points = data.curve ? data.curve.rows : [];
  if (!points.length) {
    show("curve", html("p", {}, data.curve ? "No plan was found for any budget." :
      "The curve was not computed (--no-curve, or --plan)."));
    return;
  }
  const marks = rows.filter((row) => row.least_bytes !== null && row.errors.length === 0);
  const slowest = Math.max(...points.map((point) => point.step_ns));
  const shown = marks.filter((row) => row.step_ns <= 2.6 * data.curve.keep_ns);
  const plot = { left: 70, right: 960, top: 34, bottom: 360 };
  const mostTime = 1.05 * Math.max(slowest, ...shown.map((row) => row.step_ns));
  const leastTime = 0.97 * Math.min(...points.map((point) => point.lower_bound_ns || point.step_ns));
  const xs = [...points.map((point) => point.budget_bytes), ...shown.map((row) => row.least_bytes),
    data.curve.least_bytes];
  if (budget <= FAR * Math.max(...xs)) xs.push(budget);
  const from = 0.97 * Math.min(...xs);
  const to = 1.03 * Math.max(...xs);
  const x = (value) => plot.left + (value - from) / (to - from) * (plot.right - plot.left);
  const y = (ns) => plot.bottom - (ns - leastTime) / (mostTime - leastTime) *
    (plot.bottom - plot.top);
  const stairs = (list, of) => list.map((point, i) => `${i ? `H${x(point.budget_bytes).toFixed(1)}V` :
    `M${x(point.budget_bytes).toFixed(1)} `}${y(of(point)).toFixed(1)}`).join("") +
    `H${plot.right}`;
  const bounded = points.filter((point) => point.lower_bound_ns !== null);
  const line = stairs(points, (point) => point.step_ns);
  const parts = [
    svg("rect", { class: "beyond", x: plot.left, y: plot.top, height: plot.bottom - plot.top,
      width: Math.max(x(data.curve.least_bytes) - plot.left, 0) }),
    bounded.length ? svg("path", { class: "bound", d: stairs(bounded, (p) => p.lower_bound_ns) })
      : null,
    svg("path", { class: "curve", d: line }),
    ...points.map((point) => tips(svg("circle", { class: "dot on-curve", r: 4,
      cx: x(point.budget_bytes), cy: y(point.step_ns) }),
    `In ${bytes(point.budget_bytes)}: ${time(point.step_ns)} a step, ` +
      `${point.slowdown.toFixed(3)} of keep's` + (point.gap === null ? "" :
      `\nno plan is faster than ${time(point.lower_bound_ns)}: ` +
      `the gap is ${percent(point.gap, 1)}`))),
    ...shown.map((row) => tips(svg("rect", { class: row.policy === data.best ? "dot is-best" : "dot",
      x: x(row.least_bytes) - 5, y: y(row.step_ns) - 5, width: 10, height: 10 }),
    `${row.policy} needs ${bytes(row.least_bytes)}: ${time(row.step_ns)} a step`)),
    ...labels(shown, x, y, plot)];
  const drawing = picture(1000, 402, "The least time of a step for each budget of memory",
    [...yAxis(plot, timeTicks(leastTime, mostTime, 6), y, "a step"),
      ...xAxis(plot, byteTicks(from, to, 8), x, "memory"),
      ...budgetLine(plot, x), ...parts.filter((part) => part)]);
  const left = marks.length - shown.length;
  show("curve", html("p", {}, "The blue line is the fastest plan found for each budget. No plan can " +
    "be below the grey line, and none fits in the shaded memory. The squares are the policies " +
    "above, each at the least memory that it runs in. The axes do not begin at 0." +
    (left ? ` Not shown because they are far slower: ${marks.filter((row) => !shown.includes(row))
      .map((row) => row.policy).join(", ")}.` : "")),
  figure(scroll(drawing), asTable([["budget"], ["a step"], ["of keep's"], ["no plan is below"],
    ["gap"], ["reserved"], ["host memory"]], points.map((point) => ({ cells: [
    bytes(point.budget_bytes), time(point.step_ns), point.slowdown.toFixed(3),
    point.lower_bound_ns === null ? null : time(point.lower_bound_ns),
    point.gap === null ? null : percent(point.gap, 1), bytes(point.device_reserved_bytes),
    bytes(point.host_peak_bytes)] })), "Time against memory")));
}

// Puts names beside the squares of the policies, and moves them apart if they would overlap.
function labels(marks, x, y, plot) {
  const placed = [];
  const overlaps = (a) => placed.some((b) =>
    a.from < b.from + b.width && b.from < a.from + a.width && Math.abs(a.y - b.y) < 13);
  return [...marks].sort((a, b) => a.step_ns - b.step_ns).map((row) => {
    const width = 7 * row.policy.length;
    const beside = (up, left) => ({ width, y: y(row.step_ns) + 4 - up,
      from: x(row.least_bytes) + (left ? -10 - width : 10) });
    let at = beside(0, x(row.least_bytes) + width + 10 > plot.right);
    for (let up = 0; overlaps(at); up += 4) {
      at = beside(up, true);
      if (overlaps(at)) at = beside(up + 4, false);
    }
    placed.push(at);
    return svg("text", { class: "strong", x: at.from, y: at.y }, row.policy);
  });
}

function drawNotes() {
  const slices = chosen ? chosen.slices.count : 0;
  show("notes", ...[
    "Everything here was simulated. Kernel times are estimates from the card's rates (a roofline) " +
      "unless they were measured.",
    "Memory is counted as PyTorch's allocator counts it, when the host allocates, and drawn at the " +
      "time at which the compute stream gets there. \"Needs\" is the least memory in which the " +
      "training ran in the simulator.",
    `A step is cut into ${slices} slices of equal length. For memory, a slice shows the moment ` +
      "with the most allocated bytes, so no peak is lost. For a lane, it shows how long the lane " +
      "worked and waited, so the times add up. A slice is named after the work that took most of " +
      "it. `ferry simulate --trace` has every single operation.",
    "The pictures can be read with the keyboard: Tab goes to one, the arrow keys move through it.",
    "The numbers are in this file as JSON, in the element \"data\": \"plan\" is what " +
      "`ferry plan --json` prints, and \"curve\" what it prints with `--pareto`.",
  ].map((words) => html("li", {}, words)));
}

function draw() {
  for (const place of document.querySelectorAll(".chosen")) {
    place.textContent = chosen ? chosen.policy : "none ran";
  }
  drawPolicies();
  drawPeaks();
  drawCurve();
  drawNotes();
  if (!chosen) return;
  drawTiles();
  drawMemory();
  drawLanes();
  drawModules();
}
draw();
