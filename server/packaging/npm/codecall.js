#!/usr/bin/env node
// Starts the program of the package for this platform, and ends as it ends.
'use strict';

const { spawn } = require('node:child_process');
const { dirname } = require('node:path');
const { isatty } = require('node:tty');

const { platform, arch } = process;
const name = platform === 'win32' ? 'codecall.exe' : 'codecall';

function isMusl() {
  process.report.excludeNetwork = true;
  return !process.report.getReport().header.glibcVersionRuntime;
}

// The program for this C library, else the other one: a static program runs with both.
function program() {
  const plain = `@codecall/${platform}-${arch}`;
  const packages = platform !== 'linux' ? [plain] : isMusl() ? [`${plain}-musl`, plain] : [plain, `${plain}-musl`];
  for (const found of packages) {
    try {
      return require.resolve(`${found}/bin/${name}`);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  console.error(`codecall: the package ${packages[0]} is not installed. It is an optional dependency: install codecall again without
--omit=optional (--no-optional), and on the system that it is to run on. If there is no package for ${platform}-${arch}, build the
program with \`cargo install codecall\`, or use \`uvx codecall\`.`);
  process.exit(1);
}

// The model of search by meaning is a package of its own.
function environment() {
  if (process.env.CODECALL_INSTALLED_MODEL) return process.env;
  try {
    return { ...process.env, CODECALL_INSTALLED_MODEL: dirname(require.resolve('@codecall/model/model/config.json')) };
  } catch {
    return process.env;
  }
}

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit', windowsHide: true, env: environment() });

// A terminal sends these to both processes; sent again, they would end the program without its clean-up.
// `process.stdin` must not be touched: it would make the pipe non-blocking, for the program too.
const isOnTerminal = [0, 1, 2].some(isatty);
const handlers = {
  SIGINT: () => isOnTerminal || child.kill('SIGINT'),
  SIGHUP: () => isOnTerminal || child.kill('SIGHUP'),
  SIGTERM: () => child.kill('SIGTERM'),
};
for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);

child.on('error', (error) => {
  console.error(`codecall: ${child.spawnfile} does not start: ${error.message}`);
  process.exit(1);
});
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code);
  // To end of the same signal: the default handler is back once ours is gone.
  for (const [name, handler] of Object.entries(handlers)) process.off(name, handler);
  process.kill(process.pid, signal);
  // Of a signal that does not end Node.
  setTimeout(() => process.exit(1), 1000);
});
