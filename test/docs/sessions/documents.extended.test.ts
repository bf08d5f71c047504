/** Runs the commands of the other documents. */
import { describeSession } from './session-suite.ts';
import { SESSIONS, type SessionName } from './sessions.ts';

const OF_README = ['make', 'with-control', 'without-control', 'demo'];

for (const name of Object.keys(SESSIONS)) if (!OF_README.includes(name)) describeSession(name as SessionName);
