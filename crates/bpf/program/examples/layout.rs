//! Prints where this compiler puts each parameter of a controller, for `build.py`.

use fullpipe_bpf::objects;

fn main() {
    let text = std::env::args().nth(1).expect("a controller");
    let params = objects::controller(&text).expect("a controller of CONTROLLERS");
    let fields: Vec<_> = objects::layout(&params).iter().map(|field| format!("{field:?}")).collect();
    println!(
        "defaults: &{:?}, fields: &[{}]",
        objects::image(&params).expect("its bytes"),
        fields.join(", ")
    );
}
