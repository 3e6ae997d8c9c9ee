//! Any text gives a spec or an error.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = resolve_all(&text, Format::Toml, None);
        let _ = resolve_all(&text, Format::Json, None);
    }

    #[test]
    fn toml_like_text_never_panics(lines in proptest::collection::vec(
        "(\\[{1,2}(path|flows|hosts|record|path\\.(before|reverse))\\]{1,2}|\
         (name|rate|rtt|buffer|kind|count|compare|changes|at) ?= ?(\"[0-9a-z %./]{0,12}\"|[0-9.e-]{1,8}|\\[.{0,9}\\]|\\{.{0,9}\\}|nan|true))",
        0..12,
    )) {
        let _ = resolve_all(&lines.join("\n"), Format::Toml, None);
    }

    #[test]
    fn line_of_field_is_within_text(
        text in "(.|\n|\\[{1,2}[a-c]\\]{1,2}\n|[a-c]( = |\\.)([0-9]\n|\\[[0-9], [0-9]\\]\n)?){0,20}",
        field in "([a-c]|\\[[0-9]\\]|\\.|\"|\\\\|.){0,8}",
    ) {
        for format in [Format::Toml, Format::Json] {
            let line = crate::line_of(&text, format, &field);
            prop_assert!(line.is_none_or(|line| 1 <= line && line <= text.split('\n').count()));
        }
    }

    /// The document is shown as it was written, whatever it holds.
    #[test]
    fn json_conversion_is_idempotent(keys in prop::collection::vec("\\PC{1,6}", 1..6), number in any::<i32>(), text in any::<String>()) {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let mut lines: Vec<String> = keys.iter().enumerate().map(|(index, key)| format!("{}={index}", quoted(&format!("{index}{key}")))).collect();
        lines.push(format!("number={}", f64::from(number) / 1000.0));
        lines.push(format!("text={}", quoted(&text.replace('\u{7f}', ""))));
        let json = crate::reader::to_json(&lines.join("\n"), Format::Toml).unwrap();
        let again = crate::reader::to_json(&json, Format::Json).unwrap();
        prop_assert_eq!(&json, &again);
        let places: Vec<usize> = keys.iter().enumerate().map(|(index, key)| json.find(&quoted(&format!("{index}{key}"))).unwrap()).collect();
        prop_assert!(places.is_sorted(), "{}", json);
    }

    #[test]
    fn arbitrary_values_yield_spec_or_error(
        (rate, rtt, buffer) in ("[0-9]{1,4} [kMG]bit/s", "[0-9]{1,4} (us|ms|s)", "[0-9]{1,3}(\\.[0-9])? (bdp|packets|KB)"),
        (duration, interval) in ("[0-9]{1,3} (ms|s|min)", "[0-9]{1,3} (us|ms|s)"),
        (controller, count, start) in ("(bbr1|cubic|reno|bbr1:cwnd_gain=[0-9])", 0u32..2000, "[0-9]{1,3} (ms|s)"),
        (mtu, size, cap) in (0u32..70_000, "[0-9]{1,5} (KB|packets|bdp)", "[0-9]{1,5} (KB|packets|bdp)"),
        (kind, pause) in (0usize..6, "[0-9]{1,3} (us|ms|s|h)"),
    ) {
        let application = [
            format!("size = \"{size}\""),
            format!("bursts = {{ size = \"{size}\", every = \"{pause}\" }}"),
            format!("requests = {{ size = \"{size}\", pause = \"{pause}\" }}"),
            format!("video = {{ rate = \"{rate}\", chunk = \"{pause}\", buffer = \"{interval}\" }}"),
            format!("transfers = [{{ size = \"{size}\" }}, {{ size = \"{size}\", pause = \"{pause}\" }}]"),
            format!("media = {{ frame = \"{size}\", every = \"{pause}\", deadline = \"{interval}\" }}"),
        ];
        let own = match kind {
            5 => application[kind].clone(),
            _ => format!("controller = \"{controller}\"\n{}\nmax_cwnd = \"{cap}\"", application[kind]),
        };
        let text = format!(
            "duration = \"{duration}\"\n[path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\nbuffer = \"{buffer}\"\n\
             [hosts]\nmtu = {mtu}\n[[flows]]\n{own}\ncount = {count}\nstart = \"{start}\"\n[record]\ninterval = \"{interval}\"\n"
        );
        match resolve(&text, Format::Toml, None) {
            Ok(spec) => prop_assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec),
            Err(error) => {
                prop_assert!(!error.expected.is_empty() && !error.fix.is_empty(), "{}", error);
                let key = error.field.rsplit('.').next().unwrap();
                prop_assert!(text.contains(key), "{}", error);
            }
        }
    }
}
