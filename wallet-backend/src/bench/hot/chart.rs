//! The rows as an SVG, by hand: a panel for each operation, operations a second over clients at once, both on a
//! logarithmic scale, a line for each mode. Readable on a light and on a dark page; modes differ by colour and by mark.

use std::fmt::Write as _;

use super::Row;

const WIDTH: f64 = 860.0;
const PANEL: f64 = 360.0;
/// Of the plot within its panel.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 610.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 306.0;

/// Colours by name, so that a page can be light or dark: blue, orange and so on, each with enough contrast on both.
const STYLE: &str = "svg{--page:#ffffff;--ink:#1f2328;--faint:#d8dee4;font:12px system-ui,sans-serif}\
    @media (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--faint:#30363d}}\
    text{fill:var(--ink)}.title{font-size:15px;font-weight:600}.page{fill:var(--page)}\
    .grid{stroke:var(--faint)}.axis{stroke:var(--ink)}.line{fill:none;stroke-width:2}.strong{stroke-width:3.5}\
    .hollow{fill:var(--page)}";

/// Which look a mode has, by its name.
struct Look {
    colour: &'static str,
    mark: Mark,
    dashes: &'static str,
    strong: bool,
}

#[derive(Clone, Copy)]
enum Mark {
    Disc,
    Square,
    Triangle,
}

/// The whole picture. Rows of one mode and operation are one line, by clients.
pub(super) fn draw(rows: &[Row]) -> String {
    let operations = distinct(rows.iter().map(|row| row.operation));
    let height = PANEL * operations.len() as f64 + 24.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Operations a second by clients at once\"><style>{STYLE}</style>\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    let scales = Scales::of(rows);
    for (number, operation) in operations.iter().enumerate() {
        let of_it: Vec<&Row> = rows.iter().filter(|row| row.operation == *operation).collect();
        let down = PANEL * number as f64;
        // Into a string: can't fail, here and below.
        let _ = writeln!(svg, "<g transform=\"translate(0 {down})\">");
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"{LEFT}\" y=\"26\">{operation}</text>"
        );
        scales.axes(&mut svg);
        panel(&mut svg, &scales, &of_it);
        svg.push_str("</g>\n");
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\">A hollow mark: the books did not hold.</text>\n</svg>",
        height - 8.0
    );
    svg
}

/// Lines, marks, and the legend beside them.
fn panel(svg: &mut String, scales: &Scales, rows: &[&Row]) {
    for (place, mode) in distinct(rows.iter().map(|row| row.mode)).into_iter().enumerate() {
        let look = Look::of(mode);
        let mut line: Vec<&&Row> = rows.iter().filter(|row| row.mode == mode).collect();
        line.sort_by_key(|row| row.clients);
        let points: Vec<(f64, f64)> = line.iter().map(|row| scales.point(row)).collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let Look { colour, dashes, .. } = look;
        let class = if look.strong { "line strong" } else { "line" };
        let _ = writeln!(
            svg,
            "<polyline class=\"{class}\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\" points=\"{}\"/>",
            path.join(" ")
        );
        for (row, (x, y)) in line.iter().zip(&points) {
            let title = format!("{mode}, {} clients: {:.0}/s", row.clients, row.ops_per_s);
            look.mark(svg, *x, *y, row.invariants_ok, &title);
        }
        let y = TOP + 10.0 + 20.0 * place as f64;
        let (from, to) = (RIGHT + 22.0, RIGHT + 50.0);
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" stroke=\"{colour}\" stroke-dasharray=\"{dashes}\" x1=\"{from}\" y1=\"{y}\" \
             x2=\"{to}\" y2=\"{y}\"/>"
        );
        look.mark(svg, RIGHT + 36.0, y, true, mode);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\">{mode}</text>",
            RIGHT + 58.0,
            y + 4.0
        );
    }
}

/// From figures to places, the same in every panel, so that panels can be compared.
struct Scales {
    clients: Vec<u32>,
    /// Powers of ten.
    lowest: i32,
    highest: i32,
}

impl Scales {
    fn of(rows: &[Row]) -> Self {
        let mut clients: Vec<u32> = rows.iter().map(|row| row.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        let powers = rows.iter().map(|row| power(row.ops_per_s));
        let (lowest, highest) = powers.fold((f64::MAX, f64::MIN), |(low, high), power| {
            (low.min(power), high.max(power))
        });
        let whole = |power: f64| {
            (0..12)
                .rev()
                .find(|whole| f64::from(*whole) <= power)
                .unwrap_or(0)
        };
        let lowest = whole(lowest);
        Self {
            clients,
            lowest,
            highest: whole(highest).max(lowest).saturating_add(1),
        }
    }

    fn point(&self, row: &Row) -> (f64, f64) {
        (self.x(row.clients), self.y(power(row.ops_per_s)))
    }

    fn x(&self, clients: u32) -> f64 {
        let (first, last) = (self.clients.first(), self.clients.last());
        let (first, last) = (first.copied().unwrap_or(1), last.copied().unwrap_or(1));
        if first == last {
            return f64::midpoint(LEFT, RIGHT);
        }
        let share = (f64::from(clients) / f64::from(first)).ln() / (f64::from(last) / f64::from(first)).ln();
        LEFT + share * (RIGHT - LEFT)
    }

    fn y(&self, power: f64) -> f64 {
        let share = (power - f64::from(self.lowest)) / f64::from(self.highest.saturating_sub(self.lowest));
        BOTTOM - share * (BOTTOM - TOP)
    }

    fn axes(&self, svg: &mut String) {
        for whole in self.lowest..=self.highest {
            let y = self.y(f64::from(whole));
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\"/>\
                 <text text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                spaced(10_u64.saturating_pow(whole.unsigned_abs()))
            );
        }
        for clients in &self.clients {
            let x = self.x(*clients);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\"/>\
                 <text text-anchor=\"middle\" x=\"{x:.1}\" y=\"{}\">{}</text>",
                BOTTOM + 18.0,
                spaced(u64::from(*clients))
            );
        }
        let _ = writeln!(
            svg,
            "<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\"/>\
             <text text-anchor=\"middle\" x=\"{}\" y=\"{}\">clients at once (logarithmic)</text>\
             <text text-anchor=\"middle\" transform=\"translate(18 {}) rotate(-90)\">operations a second \
             (logarithmic)</text>",
            f64::midpoint(LEFT, RIGHT),
            BOTTOM + 38.0,
            f64::midpoint(TOP, BOTTOM)
        );
    }
}

impl Look {
    fn of(mode: &str) -> Self {
        let (colour, mark) = match mode {
            "single" => ("#8b949e", Mark::Square),
            "slot-skip-locked" => ("#1f9ea8", Mark::Triangle),
            "slot-blind" => ("#2f9e44", Mark::Disc),
            "upsert" => ("#a07a00", Mark::Square),
            "journal" => ("#9b59d0", Mark::Triangle),
            "hashed" => ("#c4559d", Mark::Disc),
            "combined" => ("#d9480f", Mark::Disc),
            "combined-slots" => ("#d9480f", Mark::Square),
            "published-rand-skip-locked" => ("#d03b3b", Mark::Triangle),
            "published-sum-having" => ("#d03b3b", Mark::Square),
            "cold" => ("#3b7dd8", Mark::Disc),
            _ => ("#3b7dd8", Mark::Square),
        };
        let dashes = match mode {
            _ if mode.starts_with("published") => "3 4",
            "cold-single" | "combined-slots" => "8 4",
            _ => "none",
        };
        Self {
            colour,
            mark,
            dashes,
            strong: matches!(mode, "single" | "combined"),
        }
    }

    fn mark(&self, svg: &mut String, x: f64, y: f64, filled: bool, title: &str) {
        let colour = self.colour;
        let look = if filled {
            format!("fill=\"{colour}\"")
        } else {
            "class=\"hollow\"".to_owned()
        };
        let look = format!("{look} stroke=\"{colour}\" stroke-width=\"2\"");
        let title = format!("<title>{title}</title>");
        let _ = match self.mark {
            Mark::Disc => writeln!(
                svg,
                "<circle {look} cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\">{title}</circle>"
            ),
            Mark::Square => writeln!(
                svg,
                "<rect {look} x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\">{title}</rect>",
                x - 4.0,
                y - 4.0
            ),
            Mark::Triangle => writeln!(
                svg,
                "<path {look} d=\"M{x:.1} {:.1}l5 9h-10z\">{title}</path>",
                y - 6.0
            ),
        };
    }
}

/// The power of ten; what is less than one a second lies on the lowest line.
fn power(ops_per_s: f64) -> f64 {
    ops_per_s.max(1.0).log10()
}

/// Each once, in the order of their coming.
fn distinct(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// With a thin space between thousands.
fn spaced(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && digits.len().saturating_sub(place).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::bench::hot::Mode;

    fn row(mode: &'static str, clients: u32, ops_per_s: f64) -> Row {
        Row {
            mode,
            operation: "credit",
            clients,
            processes: 1,
            ops_per_s,
            p50_ms: 1.0,
            p99_ms: 2.0,
            refused: 0,
            retries: 0,
            deadlocks: 0,
            server_cpu_s: None,
            client_cpu_s: 0.1,
            ratio_to_single_row: None,
            invariants_ok: true,
            broken: Vec::new(),
        }
    }

    /// Whether every element that begins ends, in order; attributes and text are not looked at.
    fn is_well_formed(text: &str) -> bool {
        let mut open = Vec::new();
        for tag in text
            .split('<')
            .skip(1)
            .map(|rest| rest.split('>').next().unwrap_or(""))
        {
            let name = tag.split([' ', '/']).next().unwrap_or("");
            if let Some(name) = tag.strip_prefix('/') {
                if open.pop() != Some(name) {
                    return false;
                }
            } else if !tag.ends_with('/') {
                open.push(name);
            }
        }
        open.is_empty() && !text.contains('&') && text.matches('"').count().is_multiple_of(2)
    }

    #[test]
    fn every_mode_has_its_line_and_its_name_and_the_file_is_xml() {
        let rows: Vec<Row> = Mode::ALL
            .iter()
            .flat_map(|mode| [row(mode.name(), 1, 900.0), row(mode.name(), 64, 12_000.0)])
            .collect();
        let svg = draw(&rows);
        assert!(is_well_formed(&svg), "{svg}");
        for mode in Mode::ALL {
            assert!(svg.contains(&format!(">{}</text>", mode.name())), "{mode:?}");
        }
        assert_eq!(svg.matches("<polyline").count(), Mode::ALL.len());
    }

    #[test]
    fn ten_times_the_rate_is_as_far_up_wherever_it_begins() {
        let rows = [row("single", 1, 100.0), row("single", 100, 10_000.0)];
        let scales = Scales::of(&rows);
        let step = scales.y(2.0) - scales.y(3.0);
        assert!((scales.y(3.0) - scales.y(4.0) - step).abs() < 1e-9 && step > 0.0);
        assert!((scales.x(10) - f64::midpoint(LEFT, RIGHT)).abs() < 1e-9);
    }

    #[test]
    fn a_row_whose_books_do_not_hold_has_a_hollow_mark() {
        let sound = row("single", 1, 100.0);
        let broken = Row {
            invariants_ok: false,
            ..sound.clone()
        };
        assert_eq!(draw(&[sound]).matches("class=\"hollow\"").count(), 0);
        assert_eq!(draw(&[broken]).matches("class=\"hollow\"").count(), 1);
    }

    #[test]
    fn a_single_row_and_no_row_are_drawn_too() {
        for rows in [vec![], vec![row("single", 64, 0.0)]] {
            let svg = draw(&rows);
            assert!(
                is_well_formed(&svg) && !svg.contains("NaN") && !svg.contains("inf"),
                "{svg}"
            );
        }
    }
}
