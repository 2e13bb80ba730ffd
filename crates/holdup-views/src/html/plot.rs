//! The plot of throughput against workers, and its figures, as they stand in a page: drawn here, without a script.
//!
//! In: a scaling. Out: HTML with an SVG in it. All looks come from the page's style by class, as its policy wants; all text is our own,
//! or escaped.

use super::html;
use crate::plot::{Plot, power};
use crate::terminal::scale::{figures, law};
use crate::text::printable;
use holdup_model::report::Scaling;

/// Size of the drawing, in its own units, and where the plot begins and ends in it.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 340.0;

/// Half the width of a mark.
const MARK: f64 = 5.0;

/// The figure: the plot where there is one, and the table.
pub(super) fn figure(scaling: &Scaling) -> String {
    let svg = Plot::new(scaling)
        .map(|plot| svg(&plot, scaling))
        .unwrap_or_default();
    format!(
        "<figure class=\"plot\" id=\"plot\">{svg}{}</figure>\n",
        table(scaling)
    )
}

fn svg(plot: &Plot, scaling: &Scaling) -> String {
    let x = |workers: u32| LEFT + plot.across(workers) * (RIGHT - LEFT);
    let y = |times: f64| BOTTOM - plot.up(times) * (BOTTOM - TOP);
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        attribute(&scaling.words.join(" "))
    );
    let mut add = |part: String| out.push_str(&part);
    for step in plot.lowest..=plot.highest {
        let at = y(2.0_f64.powi(step));
        add(format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"
        ));
        add(format!(
            "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            power(step)
        ));
    }
    add(format!(
        "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>"
    ));
    for spot in &plot.spots {
        add(format!(
            "<text class=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(spot.workers),
            BOTTOM + 20.0,
            spot.workers
        ));
    }
    let most = plot.spots.last().map_or(1, |spot| spot.workers);
    add(format!(
        "<path class=\"ideal\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
        x(1),
        y(1.0),
        x(most),
        y(f64::from(most))
    ));
    let path = |of: &dyn Fn(&crate::plot::Spot) -> Option<f64>| {
        let places: Vec<String> = plot
            .spots
            .iter()
            .filter_map(|spot| Some(format!("{:.1} {:.1}", x(spot.workers), y(of(spot)?))))
            .collect();
        format!("M{}", places.join("L"))
    };
    add(format!(
        "<path class=\"control\" d=\"{}\"/>",
        path(&|spot| Some(spot.control))
    ));
    add(format!(
        "<path class=\"subject\" d=\"{}\"/>",
        path(&|spot| Some(spot.subject))
    ));
    let fitted = plot.spots.iter().any(|spot| spot.fitted.is_some());
    if fitted {
        add(format!(
            "<path class=\"fit\" d=\"{}\"/>",
            path(&|spot| spot.fitted)
        ));
    }
    for spot in &plot.spots {
        let at = x(spot.workers);
        // Beside each other, so that neither hides the other.
        for (class, [low, high], shift) in [
            ("control", spot.control_interval, MARK),
            ("subject", spot.subject_interval, -MARK),
        ] {
            let (at, low, high) = (at + shift, y(low), y(high));
            add(format!(
                "<path class=\"{class}\" d=\"M{at:.1} {low:.1}V{high:.1}M{:.1} {low:.1}H{:.1}M{:.1} {high:.1}H{:.1}\"/>",
                at - 3.0,
                at + 3.0,
                at - 3.0,
                at + 3.0
            ));
        }
        let (control, subject) = (y(spot.control), y(spot.subject));
        add(format!(
            "<rect class=\"control\" x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\"/>",
            at - 4.0,
            control - 4.0
        ));
        add(format!(
            "<circle class=\"subject\" cx=\"{at:.1}\" cy=\"{subject:.1}\" r=\"4\"/>"
        ));
    }
    let keys = [
        ("subject", "measured, and where it lies"),
        ("control", "control"),
        ("ideal", "ideal"),
        ("fit", "fitted law"),
    ];
    let mut at = LEFT;
    for (class, words) in keys.into_iter().filter(|(class, _)| fitted || *class != "fit") {
        let line = BOTTOM + 44.0;
        add(format!("<path class=\"{class}\" d=\"M{at:.1} {line:.1}h26\"/>"));
        add(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\">{words}</text>",
            at + 34.0,
            line + 4.0
        ));
        at += 60.0 + 7.2 * words.len() as f64;
    }
    out.push_str("</svg>");
    out
}

fn table(scaling: &Scaling) -> String {
    let unit = html(&printable(&scaling.unit, true));
    let mut out = format!(
        "<div class=\"scroll\"><table><thead><tr><th>workers</th><th>{unit}s a second</th><th>lies in</th><th>control</th><th>median</th>\
         <th>p99</th><th>on a CPU</th><th>without one</th><th>waiting</th></tr></thead><tbody>"
    );
    for point in &scaling.points {
        let cells = figures(point).map(|cell| format!("<td>{}</td>", html(&cell)));
        out.push_str(&format!("<tr>{}</tr>", cells.concat()));
    }
    out.push_str("</tbody></table></div>");
    if let Some(words) = law(scaling) {
        out.push_str(&format!(
            "<p class=\"aside\">{}</p>",
            html(&printable(&words, true))
        ));
    }
    out
}

/// Text in an attribute.
fn attribute(text: &str) -> String {
    html(&printable(text, true)).replace('"', "&quot;")
}
