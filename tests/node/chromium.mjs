// A real browser, for the scripts beside it.

import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
export const CHROMIUM = process.env.CHROMIUM ?? places.find((path) => existsSync(path)) ?? places[0];

export const launch = () => chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
