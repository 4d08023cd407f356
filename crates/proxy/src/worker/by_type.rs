//! Handing a value whose type only a feature knows to that feature.

/// Runs the arm of the type that a boxed or shared value is of. What features hand out has an arm each; those that are frequent come first.
macro_rules! by_type {
    ($value:ident { $($known:pat => $kind:ty: $arm:expr,)+ }) => {{
        $(let $value = match $value.downcast::<$kind>() {
            Ok($known) => return $arm,
            Err(other) => other,
        };)+
        debug_assert!(false, "a value is of no feature's type: {:?}", (*$value).type_id());
    }};
}

pub(crate) use by_type;
