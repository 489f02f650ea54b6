//! The rule files as they are written: private structs and their reader.
