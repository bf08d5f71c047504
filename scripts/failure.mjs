/** An error that ends a script with one line on standard error: `error: code: what to do`. */
export class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Runs a script's work; a Failure is said in one line, and the exit code is 2 then. */
export async function tellingFailures(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`error: ${error.code}: ${error.message}\n`);
    process.exitCode = 2;
  }
}
