/*---
description = "Sign a text with the key of the workspace, so that its receiver knows where it comes from"
secrets = ["SIGNING_KEY"]

[parameters]
required = ["text"]

[parameters.properties.text]
type = "string"
minLength = 1

[[examples]]
description = "A signature"
params = { text = "pay 10" }
secrets = { SIGNING_KEY = "correct-horse-battery" }
data = { text = "pay 10", algorithm = "SHA-256", signature = "daedaab4bc60735db5736bc1ea525646e06ae9cbcc5c0cf301bcf579b9f43600" }

[[examples]]
description = "Without a key, the error says what to do"
params = { text = "pay 10" }
error = "SIGNING_KEY is missing: store it with `codecall secret set SIGNING_KEY`"
---*/

async function execute(params, config) {
  if (!config.SIGNING_KEY) {
    return { success: false, error: 'SIGNING_KEY is missing: store it with `codecall secret set SIGNING_KEY`' };
  }
  const bytes = new TextEncoder().encode(`${config.SIGNING_KEY}:${params.text}`);
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return { success: true, data: { text: params.text, algorithm: 'SHA-256', signature: digest.toHex() } };
}
