/** Registers the routes of sources, enrollment policies, enrollments and derived keys. */
import type { EnrollmentPlane } from '../../enrollment/enrollment-plane.ts';
import type { ControlApp } from '../app.ts';
import { registerDerivedKeyRoutes } from './derived-keys-api.ts';
import { registerEnrollmentPolicyRoutes } from './enrollment-policies-api.ts';
import { registerEnrollmentRoutes } from './enrollments-api.ts';
import { registerSourceRoutes } from './trust-api.ts';

export function registerEnrollmentPlaneRoutes(app: ControlApp, plane: EnrollmentPlane): void {
  registerSourceRoutes(app, plane.sources);
  registerEnrollmentPolicyRoutes(app, plane);
  registerEnrollmentRoutes(app, plane);
  registerDerivedKeyRoutes(app, plane.keys);
}
