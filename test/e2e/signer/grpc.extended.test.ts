/** The suite of grpc.test.ts on the other versions of Envoy. */
import './grpc.test.ts';
