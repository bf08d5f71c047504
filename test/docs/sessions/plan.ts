/** Selects the blocks of a session from the table of claims. */
import { type Block, placeOf } from '../../support/docs/blocks.ts';
import { claimedBlocks } from '../../support/docs/claimed.ts';
import type { SessionPlan } from './run-session.ts';
import { SESSIONS, type SessionName } from './sessions.ts';

interface Shown {
  readonly block: Block;
  /** Source of the output: a command, or the location of a block. */
  readonly of: string;
}

export interface DocumentedSession {
  readonly plan: SessionPlan;
  readonly shown: readonly Shown[];
}

export function documentedSession(name: SessionName): DocumentedSession {
  const session = SESSIONS[name];
  const claimed = claimedBlocks().filter(({ claim }) => 'session' in claim && claim.session === name);
  const rank = ({ file }: Block) => session.documents?.indexOf(file) ?? 0;
  const blocks = claimed.filter(({ claim }) => claim.kind === 'pasted').map(({ block }) => block);
  const files = claimed.flatMap(({ block, claim }) =>
    claim.kind === 'copied' ? [[claim.path, block.text] as const] : [],
  );
  const shown = claimed.flatMap(({ block, claim }) => {
    if (claim.kind !== 'shown') return [];
    const before = blocks.filter(({ file, line }) => file === block.file && line < block.line).at(-1);
    return [{ block, of: claim.command ?? (before === undefined ? '' : placeOf(before)) }];
  });
  const commands = claimed.flatMap(({ claim }) =>
    claim.kind === 'shown' && claim.command !== undefined ? [claim.command] : [],
  );
  return {
    plan: {
      ...session,
      blocks: blocks.toSorted((a, b) => rank(a) - rank(b)),
      files: new Map(files),
      commands: [...new Set(commands)],
    },
    shown,
  };
}
