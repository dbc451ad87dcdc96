//! Choices that have a name each, for the command line, for Python and for messages.

/// Reads and writes the variants of an enum by name; the error names the parameter.
macro_rules! names {
    ($type:ident, $parameter:literal, $($variant:ident: $name:literal),+) => {
        impl std::str::FromStr for $type {
            type Err = crate::error::Error;

            fn from_str(text: &str) -> crate::error::Result<Self> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => {
                        let expected = format!("one of {}", [$($name),+].join(", "));
                        Err(crate::error::Error::parameter($parameter, expected, text))
                    }
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $name,)+
                })
            }
        }
    };
}

pub(super) use names;
