//! Trees: sessions held together (TRE, ADO, DIS-10, DIS-11, REG-11, LIV-13 to LIV-15).

mod table;
