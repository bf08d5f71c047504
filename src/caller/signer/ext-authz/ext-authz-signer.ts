/** The signer as an ext_authz server. */
import {
  type CheckServer,
  type CheckServerOptions,
  openCheckServer,
} from '../../../process/ext-authz/check-server.ts';
import { responseSerializers } from '../../../process/ext-authz/service.ts';
import { checkResponseOf, refusedResponse, type SigningCheckOptions } from './signing-check.ts';

export interface ExtAuthzSignerOptions
  extends SigningCheckOptions,
    Pick<CheckServerOptions, 'listen' | 'maxMessageBytes' | 'metrics'> {
  /** Reports an internal error; the request has been refused. */
  readonly onInternalError: (error: unknown) => void;
}

/** @throws ListenError */
export function openExtAuthzSigner(options: ExtAuthzSignerOptions): Promise<CheckServer> {
  const { listen, maxMessageBytes, metrics, onInternalError } = options;
  return openCheckServer({
    ...{ listen, maxMessageBytes, metrics },
    createAnswerer: (definition) => {
      const { checkResponse } = responseSerializers(definition);
      const fault = { code: 'internal', message: 'the signer failed' } as const;
      const refusal = checkResponse(refusedResponse(fault));
      return (request, _call, send) => {
        let answer = refusal;
        try {
          answer = checkResponse(checkResponseOf(request, options));
        } catch (error) {
          onInternalError(error);
        }
        send(answer);
      };
    },
  });
}
