// Command aws is a fake AWS provider for tests of modules with mocked
// resources. It only serves the schemas of the few resources that the modules
// use, as far as they use them. The real provider takes too long to build. The
// schemas were copied by hand from its documentation.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dataschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

func main() {
	err := providerserver.Serve(context.Background(), func() provider.Provider { return fake{} },
		providerserver.ServeOpts{Address: "registry.opentofu.org/hashicorp/aws"})
	if err != nil {
		log.Fatal(err)
	}
}

type fake struct{}

func (fake) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "aws", "5.0.0"
}

func (fake) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerschema.Schema{Attributes: map[string]providerschema.Attribute{
		"region": providerschema.StringAttribute{Optional: true},
	}}
}

func (fake) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (fake) Resources(context.Context) (all []func() resource.Resource) {
	for name, s := range resources {
		all = append(all, func() resource.Resource { return fakeResource{name, s} })
	}
	return all
}

func (fake) DataSources(context.Context) (all []func() datasource.DataSource) {
	for name, s := range dataSources {
		all = append(all, func() datasource.DataSource { return fakeData{name, s} })
	}
	return all
}

const onlySchemas = "this is a fake AWS provider that only serves schemas"

type fakeResource struct {
	name   string
	schema schema.Schema
}

func (f fakeResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = f.name
}

func (f fakeResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = f.schema
}

func (fakeResource) Create(_ context.Context, _ resource.CreateRequest, resp *resource.CreateResponse) {
	resp.Diagnostics.AddError(onlySchemas, "")
}

func (fakeResource) Read(_ context.Context, _ resource.ReadRequest, resp *resource.ReadResponse) {
	resp.Diagnostics.AddError(onlySchemas, "")
}

func (fakeResource) Update(_ context.Context, _ resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.Diagnostics.AddError(onlySchemas, "")
}

func (fakeResource) Delete(_ context.Context, _ resource.DeleteRequest, resp *resource.DeleteResponse) {
	resp.Diagnostics.AddError(onlySchemas, "")
}

type fakeData struct {
	name   string
	schema dataschema.Schema
}

func (f fakeData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = f.name
}

func (f fakeData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = f.schema
}

func (fakeData) Read(_ context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	resp.Diagnostics.AddError(onlySchemas, "")
}
