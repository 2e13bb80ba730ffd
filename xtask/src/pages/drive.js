// Uses everything in a page, as a person would, and returns what did not do what it says. Runs in the page, from outside of it.
(async () => {
    const failures = [];
    const expect = (what, so) => { if (!so) failures.push(what); };
    const all = (which, within = document) => [...within.querySelectorAll(which)];
    const one = (which) => document.querySelector(which);
    const shown = (element) => Boolean(element && element.getClientRects().length);
    // Pictures and observers follow with the next frames; a bound on frames, not on time.
    const until = async (so) => {
        for (let frame = 0; frame < 200 && !so(); frame++) await new Promise((next) => requestAnimationFrame(next));
        return so();
    };
    const frames = async (count = 2) => { for (let at = 0; at < count; at++) await new Promise((next) => requestAnimationFrame(next)); };
    const hash = () => new URLSearchParams(location.hash.slice(1));
    const press = (element, key, more = {}) => element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
    const type = (input, text) => { input.value = text; input.dispatchEvent(new Event("input", { bubbles: true })); };
    const pick = (select, value) => { select.value = value; select.dispatchEvent(new Event("change", { bubbles: true })); };
    const clear = () => { const button = all("#chips button").pop(); if (shown(one("#chips")) && button) button.click(); };
    const point = (element, kind, x, y, more = {}) =>
        element.dispatchEvent(new (kind.startsWith("pointer") ? PointerEvent : MouseEvent)(kind, { clientX: x, clientY: y, bubbles: true, pointerId: 1, ...more }));
    // Synthetic pointers can't be captured.
    Element.prototype.setPointerCapture = () => {};
    const painted = (canvas) => {
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        for (let at = 3; at < data.length; at += 4) if (data[at]) return true;
        return false;
    };
    const report = JSON.parse(one("#report").textContent).report;
    const records = (columns) => {
        if (!columns || Array.isArray(columns)) return columns;
        const names = Object.keys(columns);
        return columns[names[0]].map((_, at) => Object.fromEntries(names.map((name) => [name, columns[name][at]])));
    };
    for (const [whole, list] of [[report, "waits"], [report, "threads"], [report.timeline || {}, "tasks"], [report.timeline || {}, "rest"]]) whole[list] = records(whole[list]);
    const words = JSON.parse(one("#words").textContent);

    // What every page has.
    expect("the headline says something", one("h1") && one("h1").textContent.trim().length > 0);
    expect("there are three scripts and no more", all("script").length === 3);
    // The plot of a curve is the one picture that is written into a page.
    expect("a name has made an element", all("img, iframe, object, embed, link, svg, form, base, video, audio").every((element) => element.matches("#plot > svg:first-child")));
    expect("a curve has a plot, and nothing else has", all("svg").length === (report.scaling ? 1 : 0));
    expect("the title is the verdict", document.title.length > 0 && document.title !== "broken");
    expect(`${all("*").length} elements`, all("*").length < 9000);
    for (const element of all("button, select, input, canvas, summary")) {
        const name = element.getAttribute("aria-label") || element.textContent.trim() || element.title;
        if (!name) failures.push(`a ${element.tagName} has no name: ${element.className}`);
    }
    for (const button of all("#nav button")) {
        button.click();
        expect(`no part ${button.dataset.part}`, shown(document.getElementById(button.dataset.part)));
        expect(`the part ${button.dataset.part} has the focus`, document.activeElement.id === button.dataset.part);
    }
    one("#skip").click();
    expect("the skip link leads to the verdict", document.activeElement.id === "verdict");
    expect("and into a landmark without a script", one(one("#skip").getAttribute("href")).matches("main"));

    // Copying: into the clipboard, or selected for it.
    for (const button of all(".acts button")) {
        button.focus();
        button.click();
        expect("copying ends", await until(() => button.dataset.done));
        const box = one(".copybox");
        if (box) {
            expect("what is to be copied is selected", box.selectionEnd - box.selectionStart === box.value.length && box.value.length > 0);
            box.blur();
            expect("the box is gone", !one(".copybox"));
        }
    }
    expect("the Markdown has a first line", words.markdown.split("\n")[0].length > 0);

    // Colours and clocks. Text on colours has the contrast that WCAG asks of small text, 4.5.
    const luminance = (colour) => {
        const [r, g, b] = colour.match(/[\d.]+/g).map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const readable = () => {
        for (const piece of all(".piece").filter((piece) => piece.textContent)) {
            const style = getComputedStyle(piece);
            const [dark, light] = [luminance(style.color), luminance(style.backgroundColor)].sort((a, b) => a - b);
            expect(`text on ${piece.className} can be read`, (light + 0.05) / (dark + 0.05) >= 4.5);
        }
    };
    const theme = one("#theme");
    const before = document.documentElement.dataset.theme;
    readable();
    theme.click();
    expect("the theme changes", document.documentElement.dataset.theme !== before);
    readable();
    theme.click();
    expect("and changes back", document.documentElement.dataset.theme === before);
    for (const button of all("[data-clock]").reverse()) {
        button.click();
        expect(`the clock ${button.dataset.clock}`, button.getAttribute("aria-pressed") === "true" && (hash().get("clock") || "") === button.dataset.clock);
    }
    for (const details of all("details")) {
        details.querySelector("summary").click();
        details.querySelector("summary").click();
    }

    // Entries of where the time went.
    for (const button of all(".tile .pick").slice(0, 8)) {
        button.click();
        expect("an entry is chosen", button.getAttribute("aria-pressed") === "true" && shown(one("#chips")) && hash().get("tile"));
        button.click();
        expect("and is no longer", button.getAttribute("aria-pressed") === "false" && !shown(one("#chips")));
    }
    for (const piece of all("button.piece").slice(0, 12)) {
        piece.click();
        expect("a piece of the bar chooses", shown(one("#chips")));
        clear();
        expect("clearing clears", !shown(one("#chips")) && !hash().get("cause"));
    }
    for (const button of all("#findings .button, .small .link, .slow .link, #verdict .gaps .button").slice(0, 30)) {
        if (button.closest(".command-line")) continue;
        button.click();
        clear();
    }

    // Waits: sorted, searched, picked, walked.
    const body = one("#waits tbody");
    const rows = () => all("tr[data-wait]", body);
    if (body && rows().length) {
        for (const head of all("#waits th")) {
            for (const way of ["descending", "ascending"]) {
                head.querySelector("button").click();
                const key = head.dataset.sort;
                const told = head.getAttribute("aria-sort");
                expect(`sorted by ${key}`, told === "descending" || told === "ascending");
                if (["ns", "count", "max_ns", "p99_ns"].includes(key)) {
                    const values = rows().map((row) => report.waits[Number(row.dataset.wait)][key]);
                    expect(`rows by ${key}, ${told}`, values.every((value, at) => at === 0 || (told === "descending" ? values[at - 1] >= value : values[at - 1] <= value)));
                }
            }
        }
        const find = one("#find");
        const total = rows().length;
        type(find, "no such thing anywhere");
        expect("nothing is found of nothing", rows().length === 0 && body.textContent.length > 0);
        const name = report.waits[0].cause;
        type(find, name.toUpperCase());
        expect("a cause is found", rows().length > 0 && rows().length <= total);
        type(find, "");
        expect("all are back", rows().length === total);
        const more = all("#waits > .card > p button").find(shown);
        if (more) { more.click(); expect("more rows", rows().length > total); }

        const first = rows()[0];
        first.click();
        expect("a wait is selected", shown(one("#walk")) && hash().get("wait") === first.dataset.wait && first.getAttribute("aria-selected") === "true");
        expect("the drawer names it", one("#walk h2").textContent.length > 0 && all("#walk .way li").length > 0);
        press(document.body, "Escape");
        expect("Escape closes it", !shown(one("#walk")));
        first.focus();
        press(first, "ArrowDown");
        expect("the row below has the focus", rows().length < 2 || document.activeElement === rows()[1]);
        press(document.activeElement, "ArrowUp");
        press(document.activeElement, "Enter");
        expect("Enter selects", shown(one("#walk")));
        press(document.body, "Escape");

        // From a wait to who is in the way, and back.
        const held = report.waits.findIndex((wait, at) => wait.held_by && report.waits.some((other, index) => index !== at
            && other.asker.pid === wait.held_by.pid && other.asker.tid === wait.held_by.tid && (!wait.held_by.doing || other.cause === wait.held_by.doing)));
        if (held >= 0) {
            location.hash = "#wait=" + held;
            expect("the address is followed", await until(() => shown(one("#walk")) && !one("#on").disabled));
            press(document.body, "ArrowRight");
            expect("the arrow goes to who is in the way", hash().get("wait") !== String(held) && shown(one("#walk")));
            expect("there is a way back", !one("#back").disabled);
            press(document.body, "ArrowLeft");
            expect("and back", hash().get("wait") === String(held));
            one("#on").click();
            one("#back").click();
            expect("the buttons do the same", hash().get("wait") === String(held));
            const step = one("#walk button.step");
            if (step) { step.click(); expect("a step can be gone to", hash().get("wait") !== String(held)); }
            one('#walk [aria-label="Close"]').click();
            expect("it can be closed", !shown(one("#walk")));
            clear();
        }
        // The address holds what is looked at, and nonsense in it does nothing.
        location.hash = "#wait=999999999&cause=constructor&tile=t999&frames=9.9.9&from=5&to=1&sort=<b>&zoom=x&q=__proto__&thread=-1&what=toString";
        await frames(4);
        expect("nonsense chooses nothing", !shown(one("#walk")) && rows().length >= 0);
        location.hash = "#";
        await frames(4);
        const cause = report.waits[0].cause;
        location.hash = "#cause=" + cause;
        expect("a cause of the address", await until(() => rows().length > 0 && rows().every((row) => report.waits[Number(row.dataset.wait)].cause === cause)));
        clear();
    }

    // Threads.
    const thread = one("#threads [data-thread] .link");
    if (thread) {
        thread.click();
        expect("a thread is chosen", hash().get("thread") !== null && shown(one("#chips")));
        clear();
        const more = all("#threads > .card > p button").find(shown);
        if (more) more.click();
    }

    // The flame graph.
    const flame = one("canvas.flame");
    if (flame) {
        one("#flame").scrollIntoView();
        await frames();
        const [what, causes, threads] = all("#flame select");
        for (const option of ["running", "all", ""]) { pick(what, option); expect(`time ${option}`, what.value === option); }
        pick(causes, report.waits[0].cause);
        expect("a cause is chosen by the list", hash().get("cause") === report.waits[0].cause && rows().every((row) => report.waits[Number(row.dataset.wait)].cause === report.waits[0].cause));
        pick(causes, "");
        if (threads.options.length > 1) { pick(threads, threads.options[1].value); pick(threads, ""); }
        const button = all("#flame button").find((each) => each.textContent === "Colour by cause");
        button.click();
        expect("coloured by cause", button.getAttribute("aria-pressed") === "true");
        button.click();
        type(one('#flame input[type="search"]'), "a");
        type(one('#flame input[type="search"]'), "");
        pick(what, "all");
        const place = flame.getBoundingClientRect();
        point(flame, "mousemove", place.left + place.width / 3, place.top + 30);
        expect("a frame is told when pointed at", shown(one("#tip")));
        point(flame, "click", place.left + place.width / 3, place.top + 30);
        expect("a click zooms and chooses", hash().get("frames") && shown(one("#chips")));
        point(flame, "mouseleave", 0, 0);
        flame.focus();
        for (const key of ["ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Enter"]) press(flame, key);
        press(flame, "Escape");
        expect("Escape leaves the zoom", !hash().get("frames"));
        const link = one("#flame tbody .link");
        if (link) { link.click(); expect("the table zooms, too", hash().get("frames")); }
        clear();
        pick(what, "");
        expect("something is drawn", painted(flame));
    }

    // BEFORE and AFTER.
    const compared = report.comparison;
    if (compared) {
        expect("the verdict is the headline", words.verdict.length > 0 && one("h1"));
        const changed = compared.causes.filter((each) => each.change_ns !== 0);
        const lines = all("#changes tbody tr");
        expect("each cause that changed has a line", lines.length === Math.min(40, changed.length));
        expect("the largest change is first", lines.every((line, at) => at === 0 || Math.abs(lines[at - 1].dataset.change) >= Math.abs(line.dataset.change)));
        for (const line of all("#changes tbody tr, #made tbody tr, #amounts tbody tr, #both tbody tr, #differs dd")) {
            expect("BEFORE and AFTER are named in each line", line.textContent.includes("BEFORE") && line.textContent.includes("AFTER"));
        }
        const more = all("#amounts p button").find(shown);
        if (more) { const before_ = all("#amounts tbody tr").length; more.click(); expect("more amounts", all("#amounts tbody tr").length > before_); }
        const three = all("#both canvas");
        expect("stacks are drawn as a difference and side by side", three.length === (compared.stacks ? 3 : 0));
        if (three.length) {
            one("#both").scrollIntoView();
            await frames();
            for (const canvas of three) {
                expect("both sides are drawn", painted(canvas));
                const place = canvas.getBoundingClientRect();
                point(canvas, "mousemove", place.left + 8, place.top + 30);
                expect("a frame is told with both sides", shown(one("#tip")) && one("#tip").textContent.includes("BEFORE") && one("#tip").textContent.includes("AFTER"));
                point(canvas, "click", place.left + 8, place.top + 30);
                expect("a click zooms all three", hash().get("node") && shown(one("#both .crumbs button")));
                point(canvas, "mouseleave", 0, 0);
                canvas.focus();
                press(canvas, "Escape");
                expect("Escape leaves the zoom", !hash().get("node"));
                for (const key of ["ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Enter", "Escape"]) press(canvas, key);
            }
            const find = one('#both input[type="search"]');
            type(find, "no such function anywhere");
            expect("nothing is found of nothing", all("#both tbody tr").length === 0);
            type(find, "");
            const link = one("#both tbody .link");
            if (link) { link.click(); expect("the table of both zooms, too", hash().get("node") !== null || all("#both tbody .link").length > 0); }
            location.hash = "#node=99999999";
            await frames(4);
            expect("a node that is not there is none", !shown(one("#both .crumbs button")));
        }
    }

    // The time line.
    const lanes = one("canvas.lanes");
    if (report.timeline && (report.timeline.pieces.task || report.timeline.pieces).length) expect("there is a time line", lanes);
    if (lanes) {
        one("#timeline").scrollIntoView();
        await frames();
        const overview = one("canvas.overview");
        for (const label of ["See less time", "See less time", "See more time", "See all of it"]) {
            one(`#timeline [aria-label="${label}"]`).click();
            expect(label, (label === "See all of it") === !hash().get("zoom"));
        }
        // Every thread of which something is told has a row, and rows are drawn where one looks, at both ends.
        const raw = report.timeline.pieces;
        const tasks = (Array.isArray(raw) ? raw.map((piece) => piece.task) : raw.task || []).map((at) => report.timeline.tasks[at]);
        const told = new Set([...tasks.map((task) => task && task.thread), ...(report.timeline.rest || []).map((rest) => rest.thread)].filter((at) => report.threads[at]));
        expect(`${told.size} threads have rows: ${lanes.getAttribute("aria-label")}`, lanes.getAttribute("aria-label").startsWith(`Time line of ${told.size.toLocaleString("en")} thread`));
        if (told.size >= 1000) {
            const scroller = one(".timeline-scroll");
            const scale = devicePixelRatio || 1;
            const lines = () => {
                const pen = lanes.getContext("2d", { willReadFrequently: true });
                const whole = pen.getImageData(0, 0, lanes.width, lanes.height).data;
                const offset = scroller.scrollTop % 21;
                let drawn = 0;
                for (let row = 1; row < 19; row++) {
                    const colours = new Set();
                    for (let y = row * 21 + 2; y < row * 21 + 17; y++) {
                        const from = Math.round((y - offset) * scale) * lanes.width;
                        for (let x = Math.round(200 * scale); x < lanes.width - 4; x += 2) colours.add(whole[(from + x) * 4] + "," + whole[(from + x) * 4 + 1] + "," + whole[(from + x) * 4 + 2]);
                    }
                    drawn += Number(colours.size > 1);
                }
                return drawn;
            };
            expect(`the first rows are drawn: ${lines()}`, lines() === 18);
            expect(`no thread was left out: ${JSON.stringify(words.left_out)}`, !words.left_out.some(([what]) => what.startsWith("threads")));
            expect("only rows in sight have room", lanes.clientHeight < 500 && scroller.scrollHeight > told.size * 20);
            scroller.scrollTop = scroller.scrollHeight;
            await frames(4);
            expect(`the last rows are drawn: ${lines()}`, lines() === 18);
            scroller.scrollTop = 0;
            await frames(4);
            expect("the sum of all threads is drawn above", painted(one("canvas.overview")));
        }
        lanes.focus();
        for (const key of ["+", "+", "ArrowRight", "ArrowLeft", "-", "ArrowDown", "ArrowUp"]) press(lanes, key);
        expect("keys zoom", hash().get("zoom"));
        press(lanes, "Home");
        expect("Home shows all", !hash().get("zoom"));
        let box = lanes.getBoundingClientRect();
        lanes.dispatchEvent(new WheelEvent("wheel", { deltaY: -100, ctrlKey: true, clientX: box.left + box.width / 2, clientY: box.top + 10, bubbles: true, cancelable: true }));
        expect("Ctrl and wheel zoom", await until(() => hash().get("zoom")));
        // The page may have scrolled on meanwhile.
        box = lanes.getBoundingClientRect();
        point(lanes, "pointerdown", box.left + 500, box.top + 10);
        point(lanes, "pointermove", box.left + 420, box.top + 10);
        point(lanes, "pointerup", box.left + 420, box.top + 10);
        expect("dragging moves and picks nothing", hash().get("zoom") && !shown(one("#walk")));
        press(lanes, "Home");
        let picked = false;
        for (let x = 210; x < box.width && !picked; x += 9) {
            point(lanes, "pointermove", box.left + x, box.top + 9);
            point(lanes, "pointerdown", box.left + x, box.top + 9);
            point(lanes, "pointerup", box.left + x, box.top + 9);
            picked = shown(one("#walk"));
        }
        expect("a click picks a piece", picked && hash().get("one") !== null);
        const ended = all("#walk .facts .link")[0];
        if (ended) { const was = hash().get("one"); ended.click(); await frames(); expect("who ended it is gone to", hash().get("one") !== was); }
        press(document.body, "Escape");
        press(document.body, "Escape");
        const link = one("#timeline tbody .link");
        if (link) { link.click(); expect("the table picks, too", shown(one("#walk"))); press(document.body, "Escape"); }
        const strip = overview.getBoundingClientRect();
        point(overview, "pointermove", strip.left + 400, strip.top + 20);
        point(overview, "pointerdown", strip.left + 400, strip.top + 20);
        point(overview, "pointermove", strip.left + 600, strip.top + 20);
        point(overview, "pointerup", strip.left + 600, strip.top + 20);
        expect("dragging chooses a window", hash().get("from") && hash().get("to") && shown(one("#chips")));
        // A hand moves on for seconds, and browsers count what is written.
        const replace = history.replaceState;
        let written = 0;
        history.replaceState = (...all_) => { written += 1; return replace.apply(history, all_); };
        point(overview, "pointerdown", strip.left + 300, strip.top + 20);
        for (let x = 0; x < 40; x++) point(overview, "pointermove", strip.left + 400 + x * 5, strip.top + 20);
        expect("nothing is written while it is dragged", written === 0);
        point(overview, "pointerup", strip.left + 600, strip.top + 20);
        expect("the address is written once", written === 1 && hash().get("to") !== null);
        history.replaceState = replace;
        one("#only").click();
        one("#only").click();
        point(overview, "pointerdown", strip.left + 300, strip.top + 20);
        point(overview, "pointerup", strip.left + 300, strip.top + 20);
        expect("a click lets go of it", !hash().get("from"));
        for (const key of ["ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"]) press(overview, key);
        expect("so do the arrow keys choose", hash().get("from") !== null);
        clear();
        const scroller = one(".timeline-scroll");
        scroller.scrollTop = scroller.scrollHeight;
        await frames(3);
    }

    // The machine's figures, on the axis of the time line.
    const strips = one("canvas.strips");
    const figures = (report.host_figures || { lines: [] }).lines;
    expect("the machine's figures are there where it has some", Boolean(strips) === figures.length > 0);
    if (strips) {
        one("#machine").scrollIntoView();
        await frames();
        const shown_ = all("#machine tbody tr");
        expect("each figure has a row in the table", shown_.length === figures.length);
        for (const row of shown_) {
            const shares = [...row.querySelectorAll(".number")].map((cell) => parseFloat(cell.textContent));
            const line = figures[shown_.indexOf(row)];
            expect(`the greatest of ${line.figure}`, Math.abs(shares[1] - 100 * Math.max(...line.shares.filter((share) => share !== null))) < 0.06);
            expect(`the mean of ${line.figure} is no more than that`, shares[0] <= shares[1]);
        }
        // A strip each, as high as what it tells: the full height where it is all the time busy, nothing where nothing is told.
        const scale = devicePixelRatio || 1;
        const drawn = strips.getContext("2d").getImageData(0, 0, strips.width, strips.height).data;
        const column = (x, row) => {
            const colours = new Set();
            for (let y = Math.round((row * 34 + 5) * scale); y < Math.round((row * 34 + 27) * scale); y++) {
                const at = (y * strips.width + Math.round(x * scale)) * 4;
                colours.add(drawn[at + 3] ? `${drawn[at]},${drawn[at + 1]},${drawn[at + 2]}` : "");
            }
            return colours;
        };
        const width = strips.clientWidth;
        const left = width < 560 ? 96 : 196;
        const stretches = report.host_figures.stretches;
        const whole = Math.max(...stretches.map((each) => each.from_ns + each.ns), ...(report.windows || []).map((each) => each.from_ns + each.ns));
        figures.forEach((line, row) => {
            const busiest = line.shares.reduce((best, share, at) => (share !== null && (line.shares[best] === null || share > line.shares[best]) ? at : best), 0);
            const middle = left + ((stretches[busiest].from_ns + stretches[busiest].ns / 2) / whole) * (width - left);
            if (line.shares[busiest] > 0.2 && line.shares[busiest] < 0.9) expect(`${line.figure} is drawn in part`, column(middle, row).size >= 2);
        });
        const gap = stretches.findIndex((each, at) => at > 0 && each.from_ns > stretches[at - 1].from_ns + 2 * stretches[at - 1].ns);
        if (gap > 0) {
            const middle = left + ((stretches[gap - 1].from_ns + stretches[gap - 1].ns + stretches[gap].from_ns) / 2 / whole) * (width - left);
            expect("nothing is drawn where nothing was read", figures.every((_, row) => column(middle, row).size === 1 && column(middle, row).has("")));
        }
        const place = strips.getBoundingClientRect();
        point(strips, "pointermove", place.left + left + 5, place.top + 10);
        expect("a stretch is told when pointed at", !stretches.length || stretches[0].from_ns > 0 || shown(one("#tip")));
        point(strips, "pointerleave", 0, 0);
        strips.focus();
        for (const key of ["+", "ArrowRight", "ArrowLeft", "-"]) press(strips, key);
        press(strips, "Home");
        expect("Home shows all of it", !hash().get("zoom"));
        const when = one("#machine tbody .link");
        when.click();
        const zoomed = hash().get("zoom") !== null;
        expect("the table zooms, where there is more than that", zoomed || stretches.length < 6);
        if (zoomed && lanes) {
            const [from, to] = hash().get("zoom").split("-").map(Number);
            expect("both pictures follow the one axis", one("#timeline .aside").textContent.length > 0 && one("#machine .aside").textContent.length > 0 && from < to);
        }
        press(strips, "Home");
        expect("the machine's figures are drawn", painted(strips));
    }

    // Everything else that can be pressed: nothing of it may fail.
    const pressed = all("main button").filter(shown).slice(0, 400);
    for (const button of pressed) if (button.isConnected && !button.disabled && !button.closest(".acts, .command-line")) button.click();
    while (shown(one("#walk"))) press(document.body, "Escape");
    clear();
    expect("all is as it was", !shown(one("#chips")) && !shown(one("#walk")));
    dispatchEvent(new Event("beforeprint"));
    expect("paper is light", document.documentElement.dataset.theme === "light");
    dispatchEvent(new Event("afterprint"));
    return failures;
})()
