/** Runs the commands of the other documents, but for those of test/release. */
import { describeSession } from './session-suite.ts';
import { SESSIONS, type SessionName } from './sessions.ts';

const ELSEWHERE = ['make', 'with-control', 'without-control', 'demo', 'release'];

for (const name of Object.keys(SESSIONS)) if (!ELSEWHERE.includes(name)) describeSession(name as SessionName);
