/** The setting of the programs that sign: in which format. */
import { choice, withDefault } from '../../process/settings/settings.ts';
import type { ProofFormat } from '../../protocol/proof-format.ts';

const SIGNED_FORMATS = ['transcript-v1', 'http-message-signatures'] as const satisfies readonly ProofFormat[];

export const PROOF_SETTING = withDefault(
  choice('--proof <format>', 'format of the proof; the route must accept it', SIGNED_FORMATS),
  'transcript-v1',
);
