//! Settings of the linker for an addon of Node.

fn main() {
    napi_build::setup();
}
