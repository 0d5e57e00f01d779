//! Units as CLDR writes them in English: what stands behind the number.

/// How a unit is written: short, narrow, long; each for one and for any other number.
pub type Texts = [[&'static str; 2]; 3];

/// The texts of a unit by its identifier, the simple ones and those with a text of their own.
pub fn find(unit: &str) -> Option<&'static Texts> {
    UNITS.iter().chain(COMPOUND).find(|(name, ..)| *name == unit).map(|(_, texts)| texts)
}

/// Whether ECMA-402 allows a unit by itself.
pub fn is_simple(unit: &str) -> bool {
    UNITS.iter().any(|(name, _)| *name == unit)
}

/// What stands behind another unit for one that it is divided by.
pub fn per(unit: &str) -> Option<[&'static str; 3]> {
    PER.iter().find(|(name, _)| *name == unit).map(|&(_, texts)| texts)
}

#[rustfmt::skip]
const UNITS: &[(&str, Texts)] = &[
    ("acre", [[" ac", " ac"], ["ac", "ac"], [" acre", " acres"]]),
    ("bit", [[" bit", " bit"], ["bit", "bit"], [" bit", " bits"]]),
    ("byte", [[" byte", " byte"], ["B", "B"], [" byte", " bytes"]]),
    ("celsius", [["°C", "°C"], ["°C", "°C"], [" degree Celsius", " degrees Celsius"]]),
    ("centimeter", [[" cm", " cm"], ["cm", "cm"], [" centimeter", " centimeters"]]),
    ("day", [[" day", " days"], ["d", "d"], [" day", " days"]]),
    ("degree", [[" deg", " deg"], ["°", "°"], [" degree", " degrees"]]),
    ("fahrenheit", [["°F", "°F"], ["°", "°"], [" degree Fahrenheit", " degrees Fahrenheit"]]),
    ("fluid-ounce", [[" fl oz", " fl oz"], ["fl oz", "fl oz"], [" fluid ounce", " fluid ounces"]]),
    ("foot", [[" ft", " ft"], ["′", "′"], [" foot", " feet"]]),
    ("gallon", [[" gal", " gal"], ["gal", "gal"], [" gallon", " gallons"]]),
    ("gigabit", [[" Gb", " Gb"], ["Gb", "Gb"], [" gigabit", " gigabits"]]),
    ("gigabyte", [[" GB", " GB"], ["GB", "GB"], [" gigabyte", " gigabytes"]]),
    ("gram", [[" g", " g"], ["g", "g"], [" gram", " grams"]]),
    ("hectare", [[" ha", " ha"], ["ha", "ha"], [" hectare", " hectares"]]),
    ("hour", [[" hr", " hr"], ["h", "h"], [" hour", " hours"]]),
    ("inch", [[" in", " in"], ["″", "″"], [" inch", " inches"]]),
    ("kilobit", [[" kb", " kb"], ["kb", "kb"], [" kilobit", " kilobits"]]),
    ("kilobyte", [[" kB", " kB"], ["kB", "kB"], [" kilobyte", " kilobytes"]]),
    ("kilogram", [[" kg", " kg"], ["kg", "kg"], [" kilogram", " kilograms"]]),
    ("kilometer", [[" km", " km"], ["km", "km"], [" kilometer", " kilometers"]]),
    ("liter", [[" L", " L"], ["L", "L"], [" liter", " liters"]]),
    ("megabit", [[" Mb", " Mb"], ["Mb", "Mb"], [" megabit", " megabits"]]),
    ("megabyte", [[" MB", " MB"], ["MB", "MB"], [" megabyte", " megabytes"]]),
    ("meter", [[" m", " m"], ["m", "m"], [" meter", " meters"]]),
    ("microsecond", [[" μs", " μs"], ["μs", "μs"], [" microsecond", " microseconds"]]),
    ("mile", [[" mi", " mi"], ["mi", "mi"], [" mile", " miles"]]),
    ("mile-scandinavian", [[" smi", " smi"], ["smi", "smi"], [" mile-scandinavian", " miles-scandinavian"]]),
    ("milliliter", [[" mL", " mL"], ["mL", "mL"], [" milliliter", " milliliters"]]),
    ("millimeter", [[" mm", " mm"], ["mm", "mm"], [" millimeter", " millimeters"]]),
    ("millisecond", [[" ms", " ms"], ["ms", "ms"], [" millisecond", " milliseconds"]]),
    ("minute", [[" min", " min"], ["m", "m"], [" minute", " minutes"]]),
    ("month", [[" mth", " mths"], ["m", "m"], [" month", " months"]]),
    ("nanosecond", [[" ns", " ns"], ["ns", "ns"], [" nanosecond", " nanoseconds"]]),
    ("ounce", [[" oz", " oz"], ["oz", "oz"], [" ounce", " ounces"]]),
    ("percent", [["%", "%"], ["%", "%"], [" percent", " percent"]]),
    ("petabyte", [[" PB", " PB"], ["PB", "PB"], [" petabyte", " petabytes"]]),
    ("pound", [[" lb", " lb"], ["#", "#"], [" pound", " pounds"]]),
    ("second", [[" sec", " sec"], ["s", "s"], [" second", " seconds"]]),
    ("stone", [[" st", " st"], ["st", "st"], [" stone", " stones"]]),
    ("terabit", [[" Tb", " Tb"], ["Tb", "Tb"], [" terabit", " terabits"]]),
    ("terabyte", [[" TB", " TB"], ["TB", "TB"], [" terabyte", " terabytes"]]),
    ("week", [[" wk", " wks"], ["w", "w"], [" week", " weeks"]]),
    ("yard", [[" yd", " yd"], ["yd", "yd"], [" yard", " yards"]]),
    ("year", [[" yr", " yrs"], ["y", "y"], [" year", " years"]]),
];

#[rustfmt::skip]
const COMPOUND: &[(&str, Texts)] = &[
    ("mile-per-gallon", [[" mpg", " mpg"], ["mpg", "mpg"], [" mile per gallon", " miles per gallon"]]),
    ("mile-per-hour", [[" mph", " mph"], ["mph", "mph"], [" mile per hour", " miles per hour"]]),
];

#[rustfmt::skip]
const PER: &[(&str, [&str; 3])] = &[
    ("acre", ["/ac", "/ac", " per acre"]),
    ("bit", ["/bit", "/bit", " per bit"]),
    ("byte", ["/byte", "/B", " per byte"]),
    ("celsius", ["/°C", "/°C", " per degree Celsius"]),
    ("centimeter", ["/cm", "/cm", " per centimeter"]),
    ("day", ["/d", "/d", " per day"]),
    ("degree", ["/deg", "/°", " per degree"]),
    ("fahrenheit", ["/°F", "/°", " per degree Fahrenheit"]),
    ("fluid-ounce", ["/fl oz", "/fl oz", " per fluid ounce"]),
    ("foot", ["/ft", "/ft", " per foot"]),
    ("gallon", ["/gal US", "/gal", " per gallon"]),
    ("gigabit", ["/Gb", "/Gb", " per gigabit"]),
    ("gigabyte", ["/GB", "/GB", " per gigabyte"]),
    ("gram", ["/g", "/g", " per gram"]),
    ("hectare", ["/ha", "/ha", " per hectare"]),
    ("hour", ["/h", "/h", " per hour"]),
    ("inch", ["/in", "/in", " per inch"]),
    ("kilobit", ["/kb", "/kb", " per kilobit"]),
    ("kilobyte", ["/kB", "/kB", " per kilobyte"]),
    ("kilogram", ["/kg", "/kg", " per kilogram"]),
    ("kilometer", ["/km", "/km", " per kilometer"]),
    ("liter", ["/L", "/L", " per liter"]),
    ("megabit", ["/Mb", "/Mb", " per megabit"]),
    ("megabyte", ["/MB", "/MB", " per megabyte"]),
    ("meter", ["/m", "/m", " per meter"]),
    ("microsecond", ["/μs", "/μs", " per microsecond"]),
    ("mile", ["/mi", "/mi", " per mile"]),
    ("mile-scandinavian", ["/smi", "/smi", " per mile-scandinavian"]),
    ("milliliter", ["/mL", "/mL", " per milliliter"]),
    ("millimeter", ["/mm", "/mm", " per millimeter"]),
    ("millisecond", ["/ms", "/ms", " per millisecond"]),
    ("minute", ["/min", "/min", " per minute"]),
    ("month", ["/m", "/m", " per month"]),
    ("nanosecond", ["/ns", "/ns", " per nanosecond"]),
    ("ounce", ["/oz", "/oz", " per ounce"]),
    ("percent", ["/%", "/%", " per percent"]),
    ("petabyte", ["/PB", "/PB", " per petabyte"]),
    ("pound", ["/lb", "/lb", " per pound"]),
    ("second", ["/s", "/s", " per second"]),
    ("stone", ["/st", "/st", " per stone"]),
    ("terabit", ["/Tb", "/Tb", " per terabit"]),
    ("terabyte", ["/TB", "/TB", " per terabyte"]),
    ("week", ["/w", "/w", " per week"]),
    ("yard", ["/yd", "/yd", " per yard"]),
    ("year", ["/y", "/y", " per year"]),
];
