/** `proofgate caddy lint`: reports settings of Caddy that weaken or bypass the check. */
import { group } from '../../define/define-command.ts';
import { lintCommand } from '../lint-command.ts';

export const caddyCommands = group('caddy', 'Check the configuration of Caddy', [
  lintCommand({
    file: 'configuration in JSON, as `caddy adapt --pretty` prints it; - for standard input',
    examples: ['caddy adapt --pretty --config Caddyfile | proofgate caddy lint -'],
    load: async () => {
      const { isCaddyRule, lintCaddy } = await import('../../../tools/gateway-lint/caddy/lint-caddy.ts');
      return { isRule: isCaddyRule, lint: lintCaddy };
    },
  }),
]);
