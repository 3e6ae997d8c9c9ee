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
    fn any_values_give_a_valid_spec_or_an_error_that_names_a_field(
        (rate, rtt, buffer) in ("[0-9]{1,4} [kMG]bit/s", "[0-9]{1,4} (us|ms|s)", "[0-9]{1,3}(\\.[0-9])? (bdp|packets|KB)"),
        (duration, interval) in ("[0-9]{1,3} (ms|s|min)", "[0-9]{1,3} (us|ms|s)"),
        (controller, count, start) in ("(bbr1|cubic|reno|bbr1:cwnd_gain=[0-9])", 0u32..2000, "[0-9]{1,3} (ms|s)"),
        (mtu, size, cap) in (0u32..70_000, "[0-9]{1,5} (KB|packets|bdp)", "[0-9]{1,5} (KB|packets|bdp)"),
        (kind, pause) in (0usize..5, "[0-9]{1,3} (us|ms|s|h)"),
    ) {
        let application = [
            format!("size = \"{size}\""),
            format!("bursts = {{ size = \"{size}\", every = \"{pause}\" }}"),
            format!("requests = {{ size = \"{size}\", pause = \"{pause}\" }}"),
            format!("video = {{ rate = \"{rate}\", chunk = \"{pause}\", buffer = \"{interval}\" }}"),
            format!("transfers = [{{ size = \"{size}\" }}, {{ size = \"{size}\", pause = \"{pause}\" }}]"),
        ];
        let application = &application[kind];
        let text = format!(
            "duration = \"{duration}\"\n[path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\nbuffer = \"{buffer}\"\n\
             [hosts]\nmtu = {mtu}\n[[flows]]\ncontroller = \"{controller}\"\ncount = {count}\nstart = \"{start}\"\n\
             {application}\nmax_cwnd = \"{cap}\"\n[record]\ninterval = \"{interval}\"\n"
        );
        match resolve(&text, Format::Toml, None) {
            Ok(spec) => prop_assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec),
            Err(error) => {
                prop_assert!(!error.expected.is_empty() && !error.mend.is_empty(), "{}", error);
                let key = error.field.rsplit('.').next().unwrap();
                prop_assert!(text.contains(key), "{}", error);
            }
        }
    }
}
