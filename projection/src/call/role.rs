//! Roles as callers name them.

use std::path::PathBuf;

use tenure_core::id::{Name, NameFault};

/// Where a role is exclusive, as the caller spelled it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum RoleScope {
    /// A name, the same everywhere.
    Name(Name),
    /// A path, relative to the working directory.
    Path(PathBuf),
}

impl RoleScope {
    /// Reads a scope: a path where it begins with `/` or has `.` or `..` among its components, else a name.
    ///
    /// # Errors
    /// [`NameFault`] when it is neither.
    pub fn parse(text: &str) -> Result<Self, NameFault> {
        let dots = text.split('/').any(|part| matches!(part, "." | ".."));
        if dots || text.starts_with('/') {
            return Ok(Self::Path(text.into()));
        }
        Name::parse(text).map(Self::Name)
    }
}

/// A role within a scope, `ROLE@SCOPE`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RoleAt {
    /// The role.
    pub role: Name,
    /// Where.
    pub scope: RoleScope,
}

/// Why a text names no role.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoleFault {
    /// No `@` in it.
    #[error("a role is named ROLE@SCOPE, and this one has no scope")]
    NoScope,
    /// The role's name.
    #[error("the role: {0}")]
    Role(NameFault),
    /// The scope.
    #[error("the scope is neither a path nor a name: {0}")]
    Scope(NameFault),
}

impl std::str::FromStr for RoleAt {
    type Err = RoleFault;

    fn from_str(text: &str) -> Result<Self, RoleFault> {
        let (role, scope) = text.split_once('@').ok_or(RoleFault::NoScope)?;
        Ok(Self {
            role: Name::parse(role).map_err(RoleFault::Role)?,
            scope: RoleScope::parse(scope).map_err(RoleFault::Scope)?,
        })
    }
}
