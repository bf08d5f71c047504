/** `proofgate completion`: prints a script with which a shell completes commands, flags and names. */
import { usageError } from '../../process/program/errors.ts';
import { SCRIPTS, SHELLS } from '../completion/shell-scripts.ts';
import { command } from '../define/define-command.ts';

export const completionCommand = command({
  name: 'completion',
  summary: `Print the completion script of a shell: ${SHELLS.join(', ')}`,
  positionals: { shell: SHELLS.join(', ') },
  settings: {},
  examples: ['source <(proofgate completion bash)', 'proofgate completion fish | source'],
  run: async ({ positionals }, { output }) => {
    const shell = SHELLS.find((each) => each === positionals.shell);
    if (shell === undefined) throw usageError('bad_choice', `the shell must be one of: ${SHELLS.join(', ')}`);
    output.result(SCRIPTS[shell].trimEnd().split('\n'), { shell, script: SCRIPTS[shell] });
  },
});
