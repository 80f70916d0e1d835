// Package estimatorpb holds the gRPC contract between the estimator of a member cluster and its
// clients. All Go files except this one are generated from the .proto files: see tools/generate.
package estimatorpb
