package proxying

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/domain/jsonedit"
)

// style specifies how merged objects name their clusters.
var style = fanout.Style{Annotation: clusterv1alpha1.CachedFromClusterAnnotation, HasClusterColumn: true}

// forward forwards a write, or a request for a subresource, to the only cluster that has the object.
func (r *request) forward() error {
	if r.info.Name == "" {
		err := apierrors.NewMethodNotSupported(fanout.GroupResource(r.info), r.info.Verb)
		err.ErrStatus.Message += ": the global proxy does not know for which cluster the request is; " +
			"create objects through a PropagationPolicy, or use " + fanout.OneClusterPath
		return err
	}
	ctx := r.req.Context()
	found, err := r.findHolder(ctx, r.info.Verb)
	if err != nil {
		return err
	}
	if r.isObjectWrite() {
		return r.write(found.cluster)
	}
	handler, err := r.Handler.options.Forwards.Handler(ctx, found.cluster, r.caller, r.path, r.responder)
	if err != nil {
		return err
	}
	r.warnings.WriteTo(r.w.Header())
	handler.ServeHTTP(r.w, r.req)
	return nil
}

// isObjectWrite reports whether the request writes an object, as opposed to, for example, opening a
// stream.
func (r *request) isObjectWrite() bool {
	switch r.info.Verb {
	case "update", "patch", "delete":
		return r.info.Subresource == "" || r.info.Subresource == "status" || r.info.Subresource == "scale"
	}
	return false
}

// responseHeaders are the headers of a write's response that the client receives.
var responseHeaders = []string{"Content-Type", "Content-Encoding", "Retry-After", "Audit-Id", "Warning"}

// write sends a write to the cluster, with the cluster's own resourceVersions instead of combined
// versions. The object in the response gets a combined version, so that the client can use it in the
// next request.
func (r *request) write(cluster string) error {
	body, err := io.ReadAll(io.LimitReader(r.req.Body, r.limits.BodyBytes+1))
	if err != nil {
		return apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	if int64(len(body)) > r.limits.BodyBytes {
		return apierrors.NewRequestEntityTooLargeError("the body exceeds " + strconv.FormatInt(r.limits.BodyBytes, 10) + " bytes")
	}
	header := r.req.Header.Clone()
	for _, name := range []string{"Accept-Encoding", "Connection", "Upgrade"} {
		header.Del(name)
	}
	switch converted, mediaType, err := r.convertBody(body, cluster); {
	case isStatus(err):
		return err
	case err == nil && mediaType != "":
		body = converted
		header.Set("Content-Type", mediaType)
	}
	response, err := r.Handler.options.Forwards.Do(r.req.Context(), cluster, r.caller, memberproxy.Request{
		Method: r.req.Method, Path: r.path, Query: r.req.URL.Query(), Header: header, Body: body,
	})
	if err != nil {
		return err
	}
	r.warnings.WriteTo(r.w.Header())
	for _, name := range responseHeaders {
		for _, value := range response.Header.Values(name) {
			r.w.Header().Add(name, value)
		}
	}
	r.writeResponse(cluster, response)
	return nil
}

// writeResponse sends the body of a write's response to the client. A body that is not an object in
// JSON stays unchanged.
func (r *request) writeResponse(cluster string, response *http.Response) {
	body, err := io.ReadAll(io.LimitReader(response.Body, r.limits.PageBytes+1))
	_ = response.Body.Close() // close before writing, because the client may read slowly
	if err != nil || int64(len(body)) > r.limits.PageBytes {
		panic(http.ErrAbortHandler) // the member may have executed the write, so the client must not receive an error
	}
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode < http.StatusBadRequest && mediaType == fanout.JSON {
		if rewritten, err := rewriteObject(cluster, body); err == nil {
			body = rewritten
		}
	}
	r.w.WriteHeader(response.StatusCode)
	_, _ = r.w.Write(body)
}

// convertBody returns the body with plain versions, and its media type. An error that is a Status fails
// the request. Any other error means that the body is not an object in JSON, YAML or protobuf.
func (r *request) convertBody(body []byte, cluster string) (converted []byte, mediaType string, err error) {
	if body, mediaType, err = toJSON(body, r.req.Header.Get("Content-Type")); err != nil {
		return nil, "", err
	}
	if !json.Valid(body) {
		return nil, "", errors.New("the body is no JSON")
	}
	path := []string{"preconditions", "resourceVersion"}
	if r.info.Verb != "delete" {
		path = []string{"metadata", "resourceVersion"}
		// The cluster must not store the annotation that names it.
		if body, err = jsonedit.Remove(nil, body, "metadata", "annotations", clusterv1alpha1.CachedFromClusterAnnotation); err != nil {
			return nil, "", err
		}
	}
	version, err := jsonedit.GetString(body, path...)
	if err != nil {
		return nil, "", err
	}
	if !combinedversion.IsCombined(version) {
		// Keep a plain version, because it comes from the cluster's own response.
		return body, mediaType, nil
	}
	own := combinedversion.Parse(version).For(cluster)
	if own == "" {
		// Do not remove the version, because the write would then be unconditional.
		return nil, "", apierrors.NewConflict(fanout.GroupResource(r.info), r.info.Name, fmt.Errorf(
			"the resourceVersion is not one of cluster %q, which has the object now: read the object again", cluster))
	}
	body, err = jsonedit.Set(nil, body, jsonedit.Quote(own), path...)
	return body, mediaType, err
}

// toJSON converts a body to JSON, and returns its new media type.
func toJSON(body []byte, contentType string) (converted []byte, mediaType string, err error) {
	given, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return nil, "", err
	}
	switch given {
	case fanout.YAML, "text/yaml":
		body, err = yaml.YAMLToJSONStrict(body)
		return body, fanout.JSON, err
	case "application/vnd.kubernetes.protobuf":
		// client-go sends built-in kinds in this media type.
		object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, "", fmt.Errorf("decoding a protobuf body: %w", err)
		}
		object.GetObjectKind().SetGroupVersionKind(*kind)
		body, err = json.Marshal(object)
		return body, fanout.JSON, err
	case "application/apply-patch+yaml":
		// Keep the media type of a server-side apply, which includes JSON.
		body, err = yaml.YAMLToJSON(body)
		return body, contentType, err
	}
	return body, contentType, nil
}
