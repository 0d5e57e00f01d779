/*---
description = "The weather of a city: temperature, in the units that are asked for, and conditions"
tags = ["weather"]

[annotations]
readOnlyHint = true

[parameters]
required = ["city"]

[parameters.properties.city]
type = "string"
description = "The name of the city"

[parameters.properties.units]
type = "string"
enum = ["celsius", "fahrenheit"]
default = "celsius"

[[examples]]
description = "Without units, the temperature is in degrees Celsius"
params = { city = "Paris" }
data = { city = "Paris", temperature = 18.5, units = "celsius", conditions = "partly cloudy" }

[[examples]]
description = "In degrees Fahrenheit"
params = { city = "oslo", units = "fahrenheit" }
data = { city = "Oslo", temperature = 46.4, units = "fahrenheit", conditions = "rain" }

[[examples]]
description = "A city without a station"
params = { city = "Atlantis" }
error = "No station in Atlantis. There are stations in Paris, Oslo, Lagos"
---*/

// The last report of each station, in degrees Celsius.
const reports = [
  { city: 'Paris', temperature: 18.5, conditions: 'partly cloudy' },
  { city: 'Oslo', temperature: 8, conditions: 'rain' },
  { city: 'Lagos', temperature: 31, conditions: 'sunny' },
];

async function execute(params, config) {
  const { city, units } = params;
  const report = reports.find((one) => one.city.toLowerCase() === city.trim().toLowerCase());
  if (!report) {
    const known = reports.map((one) => one.city).join(', ');
    return { success: false, error: `No station in ${city}. There are stations in ${known}` };
  }
  const { temperature, conditions } = report;
  const shown = units === 'fahrenheit' ? Math.round((temperature * 1.8 + 32) * 10) / 10 : temperature;
  return { success: true, data: { city: report.city, temperature: shown, units, conditions } };
}
