//! TEMP
use std::path::Path;
use tenure_core::path::Scope;
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError { #[error("x")] X }
pub fn locate(_host: &dyn crate::host::Host, _base: &Path, _path: &Path) -> Result<Scope<Vec<u8>>, CheckoutError> { Err(CheckoutError::X) }
