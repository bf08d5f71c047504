/** An error that ends a script with one line on standard error: `error: code: what to do`. */
export class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Runs a script's work; a Failure becomes one line and exit code 2. */
export async function tellingFailures(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`error: ${error.code}: ${error.message}\n`);
    process.exitCode = 2;
  }
}
