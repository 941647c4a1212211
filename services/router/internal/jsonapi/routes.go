package jsonapi

import (
	"fmt"
	"net/http"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// route is one path of the interface and the method that it calls.
type route struct {
	path string
	// verbs are the HTTP methods of the path.
	verbs []string
	// call is the full name of the gRPC method.
	call    string
	in, out protoreflect.MessageType
	// field is the field of the request that the body and the parameters describe. Nil
	// means the whole request.
	field protoreflect.FieldDescriptor
	// stream is nil for a method with one answer.
	stream *grpc.StreamDesc
}

// services are those that are served.
func services() (list []protoreflect.ServiceDescriptor) {
	for _, file := range []protoreflect.FileDescriptor{
		searchv1.File_trawl_search_v1_search_proto, ingestv1.File_trawl_ingest_v1_ingest_proto, ingestv1.File_trawl_ingest_v1_sources_proto,
	} {
		for i := range file.Services().Len() {
			list = append(list, file.Services().Get(i))
		}
	}
	return list
}

// routesOf reads the google.api.http options of all methods. Methods without one have no path.
func routesOf(services []protoreflect.ServiceDescriptor) (map[string]*route, error) {
	routes := make(map[string]*route)
	for _, service := range services {
		for i := range service.Methods().Len() {
			method := service.Methods().Get(i)
			rule, ok := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
			if !ok || rule == nil {
				continue
			}
			r, err := newRoute(method, rule)
			if err != nil {
				return nil, fmt.Errorf("serve %s over HTTP: %w", method.FullName(), err)
			}
			routes[r.path] = r
		}
	}
	return routes, nil
}

// newRoute makes the route of a rule. All rules have a POST, and those of methods that change
// nothing a GET of the same path, and with it a HEAD.
func newRoute(method protoreflect.MethodDescriptor, rule *annotations.HttpRule) (*route, error) {
	r := &route{
		path: rule.GetPost(), verbs: []string{http.MethodPost},
		call: fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()),
	}
	for _, more := range rule.AdditionalBindings {
		if more.GetGet() != r.path {
			return nil, fmt.Errorf("the binding %v of %s is not a GET of the same path", more, r.path)
		}
		r.verbs = append(r.verbs, http.MethodGet, http.MethodHead)
	}
	if rule.Body != "*" {
		if r.field = method.Input().Fields().ByTextName(rule.Body); r.field == nil || r.field.Message() == nil {
			return nil, fmt.Errorf("the body %q is not a message field of the request", rule.Body)
		}
	}
	if method.IsStreamingServer() {
		r.stream = &grpc.StreamDesc{StreamName: string(method.Name()), ServerStreams: true}
	}
	var err error
	if r.in, err = protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName()); err != nil {
		return nil, err
	}
	r.out, err = protoregistry.GlobalTypes.FindMessageByName(method.Output().FullName())
	return r, err
}

// part is the message of a request that body and parameters describe.
func (r *route) part(req proto.Message) proto.Message {
	if r.field == nil {
		return req
	}
	return req.ProtoReflect().Mutable(r.field).Message().Interface()
}
