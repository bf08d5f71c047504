/** `proofgate traefik lint`: reports settings of Traefik that weaken or bypass the check. */
import { group } from '../../define/define-command.ts';
import { lintCommand } from '../lint-command.ts';

export const traefikCommands = group('traefik', 'Check the configuration of Traefik', [
  lintCommand({
    file: 'install and routing configuration in YAML, best both at once; - for standard input',
    examples: [
      'cat traefik.yaml proofgate.yaml | proofgate traefik lint -',
      'proofgate traefik lint middlewares.yaml --allow body-not-forwarded',
    ],
    load: async () => {
      const { isTraefikRule, lintTraefik } = await import(
        '../../../tools/gateway-lint/traefik/lint-traefik.ts'
      );
      return { isRule: isTraefikRule, lint: lintTraefik };
    },
  }),
]);
