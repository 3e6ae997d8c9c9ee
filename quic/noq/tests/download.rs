//! The example, on loopback.

#[path = "../examples/download.rs"]
#[allow(dead_code, reason = "the example's main")]
mod download;

#[tokio::test(flavor = "multi_thread")]
async fn the_example_downloads_its_file_and_checks_it() -> download::Result<()> {
    let server = download::server("127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    let serving = tokio::spawn(download::serve(server));
    download::fetch(address).await?;
    serving.abort();
    Ok(())
}
