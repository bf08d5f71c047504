/** `proofgate ctl rotate-target-token`: another token for a target; the one before works on for a while. */

import { CliError } from '../../../program/errors.ts';
import { replaceFile } from '../../../program/output-files.ts';
import { required, text } from '../../../program/settings.ts';
import { CTL_SETTINGS, withControl } from '../../ctl/ctl-connection.ts';
import { type CliContext, defineCommand, type ProofgateCommand } from '../../define-command.ts';

const SETTINGS = {
  ...CTL_SETTINGS,
  out: required(text('--out <file>', 'where the new token is written, mode 0600; replaces the file')),
};

export function registerCtlTargetToken(parent: ProofgateCommand, context: CliContext): void {
  defineCommand(parent, context, {
    name: 'rotate-target-token',
    summary: 'Give a target another token; the one before works on for a while',
    positionals: { target: 'its ID' },
    settings: SETTINGS,
    examples: [
      'proofgate ctl rotate-target-token tgt_06cz… --out gateway.token --control-url https://control.example --token-file token',
    ],
    run: ({ settings, positionals }) =>
      withControl(settings, context, async (api) => {
        const { body } = await api.act(
          `/v1/targets/${encodeURIComponent(positionals.target)}/rotate-token`,
          {},
        );
        const { token, ...shown } = body;
        if (typeof token !== 'string') {
          throw new CliError('unreachable', 'answer_unexpected', 'Control answered without a token');
        }
        await replaceFile({ path: settings.out, content: `${token}\n`, mode: 0o600 });
        context.output.result([`token of ${positionals.target} is in ${settings.out}`], shown);
      }),
  });
}
