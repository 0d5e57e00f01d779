// A process that answers each line with a line, one at a time. It is started when it is needed, and again if it gives no answer.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export class LineServer {
  #command;
  #limitMs;
  #process = null;
  #answer = null;

  constructor(command, limitMs) {
    this.#command = command;
    this.#limitMs = limitMs;
  }

  /** Returns the answer to a question; null if there is none in time, or the process ends. */
  ask(question) {
    this.#process ??= this.#start();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.close(), this.#limitMs);
      this.#answer = (line) => {
        clearTimeout(timer);
        this.#answer = null;
        try {
          resolve(line === null ? null : JSON.parse(line));
        } catch {
          this.close();
          resolve(null);
        }
      };
      this.#process.stdin.write(`${JSON.stringify(question)}\n`);
    });
  }

  close() {
    const ended = this.#process;
    this.#process = null;
    ended?.kill('SIGKILL');
    this.#answer?.(null);
  }

  #start() {
    const [file, ...rest] = this.#command;
    const child = spawn(file, rest, { stdio: ['pipe', 'pipe', 'ignore'], env: { ...process.env, TZ: 'UTC' } });
    const current = (then) => { if (this.#process === child) then(); };
    child.stdin.on('error', () => {});
    createInterface({ input: child.stdout }).on('line', (line) => current(() => this.#answer?.(line)));
    child.on('error', () => current(() => this.close()));
    child.on('exit', () => current(() => this.close()));
    return child;
  }
}
