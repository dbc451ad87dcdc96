//! Choices that have a name each, for the command line, for Python and for messages.

/// Gives an enum its list of variants, and reads them by name or alias and writes them by name; the error
/// names the parameter.
macro_rules! names {
    ($type:ident, $parameter:literal, $($variant:ident: $name:literal $(| $alias:literal)*),+) => {
        impl $type {
            /// Every choice, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name on the command line and in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = crate::error::Error;

            fn from_str(text: &str) -> crate::error::Result<Self> {
                match text {
                    $($name $(| $alias)* => Ok(Self::$variant),)+
                    _ => {
                        let expected = format!("one of {}", [$($name),+].join(", "));
                        Err(crate::error::Error::parameter($parameter, expected, text))
                    }
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Reads an enum whose variant `Auto` has a name and whose other variant has a number; the number is read elsewhere.
macro_rules! auto_or_number {
    ($type:ident, $parameter:literal) => {
        impl std::str::FromStr for $type {
            type Err = crate::error::Error;

            fn from_str(text: &str) -> crate::error::Result<Self> {
                match text {
                    "auto" => Ok(Self::Auto),
                    _ => {
                        let expected = "auto or a number of at least 0";
                        Err(crate::error::Error::parameter($parameter, expected, text))
                    }
                }
            }
        }
    };
}

/// Gives a type its default value.
macro_rules! defaults {
    ($type:ident $value:tt) => {
        impl Default for $type {
            fn default() -> Self {
                Self $value
            }
        }
    };
}

pub(crate) use auto_or_number;
pub(crate) use defaults;
pub(crate) use names;
