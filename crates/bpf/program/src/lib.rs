//! One controller behind the functions that the shim calls (`shim/border.h`). The shim checks every pointer.
#![no_std]
#![feature(asm_experimental_arch)] // For the panic handler; build.py lets the stable compiler take it.

use fullpipe_cc::controllers;

#[cfg(feature = "bbr1")]
use controllers::bbr1::{Bbr1 as Controller, Params};
#[cfg(feature = "bbr3")]
use controllers::bbr3::{Bbr3 as Controller, Params};
#[cfg(feature = "bbr3-linux")]
use controllers::bbr3_linux::{Bbr3Linux as Controller, Params};

fullpipe_bpf::program!(Controller, Params, Controller::new);
