//! Typed commands: a method for each, made from the command table.
