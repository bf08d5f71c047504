/** `proofgate nginx lint`: reports settings of nginx that weaken or bypass the check. */
import { group } from '../../define/define-command.ts';
import { lintCommand } from '../lint-command.ts';

export const nginxCommands = group('nginx', 'Check the configuration of nginx', [
  lintCommand({
    file: 'configuration, such as the output of nginx -T; - for standard input',
    examples: [
      'nginx -T | proofgate nginx lint -',
      'proofgate nginx lint nginx.conf --allow location-unchecked',
    ],
    load: async () => {
      const { isNginxRule, lintNginx } = await import('../../../tools/gateway-lint/nginx/lint-nginx.ts');
      return { isRule: isNginxRule, lint: lintNginx };
    },
  }),
]);
