/** Routes of the other parts of Control without their services, for tests of the checks that run before a handler. */
import type { ControlApp } from '../../../src/control/api/app.ts';
import { registerChangeRoutes } from '../../../src/control/api/routes/changes-api.ts';
import { registerDecisionRoutes } from '../../../src/control/api/routes/decisions-api.ts';
import { registerDeclarationRoute } from '../../../src/control/api/routes/declaration-api.ts';
import {
  registerDerivedKeyRoutes,
  registerEnrollmentRoutes,
} from '../../../src/control/api/routes/enrollments-api.ts';
import { registerExplanationRoute } from '../../../src/control/api/routes/explanations-api.ts';
import { registerRuntimeRoutes } from '../../../src/control/api/routes/runtime-api.ts';
import { registerSessionRoutes } from '../../../src/control/api/routes/session-api.ts';
import { registerTargetSelfRoutes } from '../../../src/control/api/routes/targets-api.ts';
import {
  registerEnrollmentPolicyRoutes,
  registerSourceRoutes,
} from '../../../src/control/api/routes/trust-api.ts';

export function registerOtherRoutes(app: ControlApp): void {
  registerSessionRoutes(app, absent());
  registerChangeRoutes(app, absent());
  registerDeclarationRoute(app, absent());
  registerSourceRoutes(app, absent());
  registerEnrollmentPolicyRoutes(app, absent());
  registerEnrollmentRoutes(app, absent());
  registerDerivedKeyRoutes(app, absent());
  registerRuntimeRoutes(app, absent());
  registerExplanationRoute(app, absent());
  registerDecisionRoutes(app, absent());
  registerTargetSelfRoutes(app, absent());
}

/** A stub whose members can be read and bound while routes are registered; it does nothing. */
function absent<T>(): T {
  const nothing = () => {};
  const proxy: unknown = new Proxy(nothing, {
    get: (_, name) => (name === 'then' ? undefined : proxy),
    apply: () => proxy,
  });
  return proxy as T;
}
