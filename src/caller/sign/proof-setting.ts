/** The setting of the programs that sign: in which format. */
import { choice, withDefault } from '../../process/settings/settings.ts';
import { PROOF_FORMATS } from '../../protocol/proof-format.ts';

export const PROOF_SETTING = withDefault(
  choice('--proof <format>', 'format of the proof; the route must accept it', PROOF_FORMATS),
  'transcript-v1',
);
