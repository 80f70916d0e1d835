package proxying

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"karmada.io/karmada/internal/domain/clusterjson"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/domain/rawjson"
)

// forward forwards a write, or a request for a subresource, to the only cluster that has the object.
func (r *request) forward() error {
	if r.info.Name == "" {
		err := apierrors.NewMethodNotSupported(r.groupResource(), r.info.Verb)
		err.ErrStatus.Message += ": the global proxy does not know for which cluster the request is; " +
			"create objects through a PropagationPolicy, or use " + memberproxy.OneClusterPath
		return err
	}
	ctx := r.req.Context()
	found, err := r.findHolder(ctx, r.info.Verb)
	if err != nil {
		return err
	}
	handler, err := r.Handler.options.Forwards.Handler(ctx, found.cluster, r.caller, r.path, r.responder)
	if err != nil {
		return err
	}
	r.warnings.write(r.w)
	if !r.isObjectWrite() {
		handler.ServeHTTP(r.w, r.req)
		return nil
	}
	req, err := r.withPlainVersions(found.cluster)
	if err != nil {
		return err
	}
	w := &objectWriter{ResponseWriter: r.w, cluster: found.cluster, limit: int(r.limits.BodyBytes)}
	handler.ServeHTTP(w, req)
	w.finish()
	return nil
}

// isObjectWrite reports whether the request writes an object, and not for example a stream.
func (r *request) isObjectWrite() bool {
	switch r.info.Verb {
	case "update", "patch", "delete":
		return r.info.Subresource == "" || r.info.Subresource == "status" || r.info.Subresource == "scale"
	}
	return false
}

// withPlainVersions returns the request with the resourceVersions of the cluster in its body,
// instead of combined versions. A body that cannot be read is forwarded unchanged.
func (r *request) withPlainVersions(cluster string) (*http.Request, error) {
	if r.req.Body == nil || r.req.Body == http.NoBody {
		return r.req, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.req.Body, r.limits.BodyBytes+1))
	if err != nil {
		return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	if int64(len(body)) > r.limits.BodyBytes {
		return nil, apierrors.NewRequestEntityTooLargeError("the body exceeds " + strconv.FormatInt(r.limits.BodyBytes, 10) + " bytes")
	}
	req := r.req.Clone(r.req.Context())
	changed, mediaType, err := r.convertBody(body, cluster)
	switch {
	case isStatus(err):
		return nil, err
	case err == nil:
		body = changed
		req.Header.Set("Content-Type", mediaType)
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return req, nil
}

// convertBody returns a body with plain versions, and its media type. An error that is a Status fails
// the request. Any other error means that the body is no object in JSON, YAML or protobuf.
func (r *request) convertBody(body []byte, cluster string) (converted []byte, mediaType string, err error) {
	if body, mediaType, err = r.toJSON(body); err != nil {
		return nil, "", err
	}
	if !rawjson.Valid(body) {
		return nil, "", errNoJSON
	}
	path := []string{"preconditions", "resourceVersion"}
	if r.info.Verb != "delete" {
		path = []string{"metadata", "resourceVersion"}
		if body, err = removeAnnotation(body); err != nil {
			return nil, "", err
		}
	}
	version, err := rawjson.GetString(body, path...)
	if err != nil {
		return nil, "", err
	}
	if !combinedversion.IsCombined(version) {
		// A plain version comes from a response of the cluster itself, and stays.
		return body, mediaType, nil
	}
	own := combinedversion.Parse(version).For(cluster)
	if own == "" {
		// Without a version, the write would be unconditional.
		return nil, "", apierrors.NewConflict(r.groupResource(), r.info.Name, fmt.Errorf(
			"the resourceVersion is not one of cluster %q, which has the object now: read the object again", cluster))
	}
	body, err = rawjson.Set(nil, body, rawjson.Quote(own), path...)
	return body, mediaType, err
}

var errNoJSON = errors.New("the body is no JSON")

// toJSON converts a body to JSON, and returns its new media type.
func (r *request) toJSON(body []byte) (converted []byte, mediaType string, err error) {
	header := r.req.Header.Get("Content-Type")
	given, _, err := mime.ParseMediaType(header)
	if err != nil && header != "" {
		return nil, "", err
	}
	switch given {
	case "application/yaml", "text/yaml":
		body, err = yaml.YAMLToJSONStrict(body)
		return body, jsonMediaType, err
	case protobufMediaType:
		body, err = protobufToJSON(body)
		return body, jsonMediaType, err
	case "application/apply-patch+yaml":
		// The media type of a server-side apply includes JSON.
		body, err = yaml.YAMLToJSON(body)
		return body, header, err
	}
	return body, header, nil
}

// removeAnnotation removes the annotation that names the cluster, which must not be stored.
func removeAnnotation(body []byte) ([]byte, error) {
	annotation, err := rawjson.Get(body, "metadata", "annotations", clusterv1alpha1.CachedFromClusterAnnotation)
	if err != nil || annotation == nil {
		return body, err
	}
	return rawjson.Remove(nil, body, "metadata", "annotations", clusterv1alpha1.CachedFromClusterAnnotation)
}

// objectWriter rewrites the object in the response to a write, so that the client can use its
// resourceVersion in the next request.
type objectWriter struct {
	http.ResponseWriter
	cluster string
	limit   int
	code    int
	body    bytes.Buffer
	// isForwarded means that the response is too large, or no JSON, and is forwarded unchanged.
	isForwarded bool
}

// WriteHeader implements http.ResponseWriter.
func (o *objectWriter) WriteHeader(code int) {
	if o.code != 0 {
		return
	}
	if code < http.StatusOK {
		o.ResponseWriter.WriteHeader(code)
		return
	}
	o.code = code
	mediaType, _, _ := mime.ParseMediaType(o.Header().Get("Content-Type"))
	if code != http.StatusOK && code != http.StatusCreated && code != http.StatusAccepted ||
		mediaType != jsonMediaType || o.Header().Get("Content-Encoding") != "" {
		o.isForwarded = true
		o.ResponseWriter.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (o *objectWriter) Write(p []byte) (int, error) {
	if o.code == 0 {
		o.WriteHeader(http.StatusOK)
	}
	if o.isForwarded {
		return o.ResponseWriter.Write(p)
	}
	o.body.Write(p)
	if o.body.Len() > o.limit {
		o.isForwarded = true
		o.ResponseWriter.WriteHeader(o.code)
		_, err := o.ResponseWriter.Write(o.body.Next(o.body.Len()))
		return len(p), err
	}
	return len(p), nil
}

// Unwrap lets http.ResponseController find the original writer.
func (o *objectWriter) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// Flush implements http.Flusher. It does nothing while the response is held.
func (o *objectWriter) Flush() {
	if o.isForwarded {
		_ = http.NewResponseController(o.ResponseWriter).Flush()
	}
}

// finish writes the held response.
func (o *objectWriter) finish() {
	if o.isForwarded || o.code == 0 {
		return
	}
	body := o.body.Bytes()
	if rawjson.Valid(body) {
		if rewritten, err := clusterjson.RewriteObject(body, o.cluster); err == nil {
			body = rewritten
		}
	}
	o.Header().Set("Content-Length", strconv.Itoa(len(body)))
	o.ResponseWriter.WriteHeader(o.code)
	_, _ = o.ResponseWriter.Write(body)
}
