/** Observed routes at Envoy with ext_authz over gRPC. */

import { envoyGrpc } from '../../support/points/envoy-grpc.ts';
import { LANE_ENVOYS } from '../lane-envoys.ts';
import { describePoints } from './describe-points.ts';

describePoints(LANE_ENVOYS.map((version) => envoyGrpc(version)));
