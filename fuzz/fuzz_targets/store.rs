//! libFuzzer's door to `targets::store`; without `cfg(fuzzing)` an empty program.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|data: &[u8]| tenure_fuzz::targets::store(data));

#[cfg(not(fuzzing))]
fn main() {}
